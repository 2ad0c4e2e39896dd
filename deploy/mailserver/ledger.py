"""The ledger: every injected fault and planted oddity, and the endings that are legitimate.

As a file it is JSON lines: one `entry` line when something is injected, one `ending` line
for each entry when the workload has settled (what happened later decides, see history.py).
"""

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from deploy.mailserver.books import Books
from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.history import (
    MESSAGES,
    CounterWrite,
    MailWrite,
    ProjectionWrite,
    RowHistory,
    RowKey,
    RowPlace,
    Statement,
)
from deploy.mailserver.mailbox_statements import MAILBOXES

VERIFIED = "verified"
"""The reconciler repaired it and saw the repair hold."""
HEALED = "healed"
"""The mail server's own retry or a later write of it made both sides equal.

For a counter: it is right, and no correction was needed (one fault made up for another).
"""
MAILBOX_CONFLICT = "mailbox_conflict"
"""`reconcile mailboxes` reports it, and repairs nothing while users work."""
AMBIGUOUS_RANGE_DELETE = "ambiguous_range_delete"
CONTENT_LOST = "content_lost"
"""An ambiguous range delete of which James has deleted the content: no truth row is left."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One fault or oddity. `accepts` names the legitimate endings (any one of them).

    It is empty as long as the row's history is to decide. `projection` is whose rows they are.
    """

    id: str
    kind: str
    operation: str
    statement: str
    messageid: UUID | None
    rows: tuple[RowKey, ...]
    time: datetime
    accepts: tuple[str, ...] = ()
    projection: str = MESSAGES

    @property
    def places(self) -> tuple[RowPlace, ...]:
        """Its rows among those of all projections."""
        return tuple((self.projection, row) for row in self.rows)


class Ledger:
    """Collects entries and row histories from all threads; writes to `path` if given."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._entries: list[LedgerEntry] = []
        self._books = Books()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("", encoding="utf-8")

    def fault(self, fault_id: str, kind: str, write: MailWrite) -> None:
        """A fault was injected into this statement."""
        self.planted(
            LedgerEntry(
                id=fault_id,
                kind=kind,
                operation=write.operation,
                statement=write.statement,
                messageid=write.messageid,
                rows=(write.row,),
                time=datetime.now(UTC),
                projection=write.projection,
            )
        )

    def planted(self, entry: LedgerEntry) -> None:
        """Something was planted, by a fault or by hand."""
        with self._lock:
            self._entries.append(entry)
            self._append_line({"event": "entry", **_jsonable(entry)})

    def meant(self, write: MailWrite) -> None:
        """The mail server is about to send this statement."""
        with self._lock:
            self._books.meant(write)

    def applied(self, write: ProjectionWrite, timestamp_us: int) -> None:
        """Cassandra acknowledged this statement with this write time."""
        with self._lock:
            self._books.applied(write, timestamp_us)

    def doubtful(self, write: ProjectionWrite) -> None:
        """Cassandra did not answer: this statement may or may not have been applied."""
        with self._lock:
            self._books.doubtful(write)

    def counted(self, write: CounterWrite) -> None:
        """Cassandra acknowledged this counter update."""
        with self._lock:
            self._books.counted(write)

    def listed(self, mailboxid: UUID, granted: Mapping[str, str]) -> None:
        """The newest event of a mailbox has this list of rights."""
        with self._lock:
            self._books.lists[mailboxid] = granted

    def stored(self, messageid: UUID, attachments: Set[UUID]) -> None:
        """The content of a message lists these attachments, to which there are references."""
        with self._lock:
            self._books.contents[messageid] = attachments

    def entries(self) -> list[LedgerEntry]:
        """All entries, each with the endings that its row's history so far allows."""
        with self._lock:
            return [self._with_endings(entry) for entry in self._entries]

    def settle(self) -> list[LedgerEntry]:
        """Write the ending lines; call it when all late statements have been sent."""
        entries = self.entries()
        with self._lock:
            for entry in entries:
                self._append_line({"event": "ending", "id": entry.id, "accepts": entry.accepts})
        return entries

    def progress(self) -> tuple[int, int]:
        """How many statements were meant so far, and how many entries there are."""
        with self._lock:
            return self._books.statements, len(self._entries)

    def differing(self, roots: Mapping[UUID, str]) -> set[RowPlace]:
        """What is wrong in every table, as far as the mail server's own writes tell.

        `roots` names the quota root of each mailbox.
        """
        with self._lock:
            return self._books.differing(roots)

    def _with_endings(self, entry: LedgerEntry) -> LedgerEntry:
        if entry.accepts:
            return entry
        [row] = entry.rows
        history = self._books.history((entry.projection, row))
        if entry.projection in COUNTER_TABLES:
            endings: tuple[str, ...] = (VERIFIED, HEALED)
        elif entry.projection == MESSAGES and entry.messageid is not None:
            copies = len(self._books.uids_of(row[0], entry.messageid))
            endings = legitimate_endings(history, copies)
        else:
            right = self._books.is_right((entry.projection, row)) or history.in_doubt
            wrong = MAILBOX_CONFLICT if entry.projection == MAILBOXES else VERIFIED
            endings = (wrong, HEALED) if right else (wrong,)
        return replace(entry, accepts=endings)

    def _append_line(self, line: dict[str, object]) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def legitimate_endings(history: RowHistory, copies: int) -> tuple[str, ...]:
    """How a fault in this row may end, given everything that was sent to the row.

    `copies` counts the uids that the message ever had in this mailbox: with more than one,
    the truth's delete (without uid) removed them all, and an orphan may be held as ambiguous.
    """
    meant, applied = history.meant_row(), history.applied_row()
    endings = [VERIFIED]
    if meant == applied or history.in_doubt:
        endings.append(HEALED)
    deleted = any(write.statement is Statement.DELETE for write in history.meant)
    if deleted and applied and copies > 1:
        endings += [AMBIGUOUS_RANGE_DELETE, CONTENT_LOST]
    return tuple(endings)


def judge(
    entry: LedgerEntry, reported: Mapping[RowPlace, frozenset[str]], differing: frozenset[RowPlace]
) -> str | None:
    """The ending of one entry, or None where it did not end legitimately.

    `reported` holds, for each place, what the reconciler says of it (`verified`, or the name
    of a class); `differing` the places that the full comparison still lists.
    """
    said = [reported.get(place, frozenset()) for place in entry.places]
    classes = [name for name in entry.accepts if name not in (VERIFIED, HEALED)]
    for name in classes:
        if any(name in words for words in said):
            return name
    if differing.intersection(entry.places):
        return None
    if VERIFIED in entry.accepts and all(VERIFIED in words for words in said):
        return VERIFIED
    return HEALED if HEALED in entry.accepts else None


def held_rows(entries: Iterable[LedgerEntry]) -> frozenset[RowKey]:
    """The rows that may still differ at the end: reported ones."""
    return frozenset(
        row for entry in entries if set(entry.accepts) - {VERIFIED, HEALED} for row in entry.rows
    )


def read_entries(path: Path) -> Iterator[LedgerEntry]:
    """The entries of a ledger file, with their endings where it was settled.

    Raises OSError where there is no such file and ValueError where a line is not JSON.
    """
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    endings = {line["id"]: tuple(line["accepts"]) for line in lines if line["event"] == "ending"}
    for line in lines:
        if line["event"] == "entry":
            yield LedgerEntry(
                id=line["id"],
                kind=line["kind"],
                operation=line["operation"],
                statement=line["statement"],
                messageid=UUID(line["messageid"]) if line["messageid"] else None,
                rows=tuple((UUID(first), second) for first, second in line["rows"]),
                time=datetime.fromisoformat(line["time"]),
                accepts=endings.get(line["id"], tuple(line["accepts"])),
                projection=line["projection"],
            )


def _jsonable(entry: LedgerEntry) -> dict[str, object]:
    rows = [[str(first), second] for first, second in entry.rows]
    return asdict(entry) | {
        "messageid": str(entry.messageid) if entry.messageid else None,
        "rows": rows,
        "time": entry.time.isoformat(),
    }

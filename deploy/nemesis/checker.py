"""The checker: what became of the users' writes, by their history and the final rows. Pure.

It shares nothing with the product. What the truth says of a projection is the full comparison's
answer; who made a difference follows from the history.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from uuid import UUID

from deploy.comparison.counters import wanted_sums
from deploy.comparison.differences import differences
from deploy.comparison.messages import DifferenceKind, Mismatch
from deploy.comparison.snapshot import Snapshot, snapshot_of
from deploy.mailserver.attachments import REFERENCES
from deploy.mailserver.counters import COUNTER_TABLES, CounterTable
from deploy.mailserver.history import MESSAGES, RowKey
from deploy.mailserver.indexes import APPLICABLE_FLAGS
from deploy.mailserver.rights import LIST_RIGHTS, USER_RIGHTS
from deploy.nemesis.cells import ByUsers, UserCells, explained
from deploy.nemesis.counts import counter_name, user_sum
from deploy.nemesis.history import UserWrite
from deploy.nemesis.margins import CounterMargin, margins
from deploy.nemesis.statement import UserWriteKind
from deploy.nemesis.tables import (
    ABSENT,
    MARKER,
    TABLES,
    FinalTables,
    Held,
    JsonValue,
    RowId,
    TablePart,
    canonical,
    element_name,
    held_cells,
    row_id,
)
from deploy.nemesis.verdict import Judgement, Violation, ViolationName, cell_evidence, cell_name

PLACES: Mapping[str, tuple[str, Callable[[RowKey], tuple[object, ...]]]] = {
    MESSAGES: ("messageidtable", lambda row: row),
    "deleted_uids": ("messagedeleted", lambda row: row),
    "unseen_uids": ("firstunseen", lambda row: row),
    "recent_uids": ("mailboxrecents", lambda row: row),
    APPLICABLE_FLAGS: ("applicableflag", lambda row: row[:1]),
    LIST_RIGHTS: ("aclv2", lambda row: row),
    USER_RIGHTS: ("usermailboxacl", lambda row: (row[1], row[0])),
    REFERENCES: ("attachmentmessageid", lambda row: row),
}
"""The table of each projection of the full comparison, and the key there of one of its rows."""
LEFT = (
    DifferenceKind.INCOMPLETE_TRUTH,
    DifferenceKind.DUPLICATE_UID,
    DifferenceKind.UNREADABLE_LIST,
    DifferenceKind.MAILBOX_CONFLICT,
)
"""What the product only reports: the truth itself is not clear."""
WORST = (
    ViolationName.OVERRIDDEN,
    ViolationName.LOST,
    ViolationName.NOT_CONVERGED,
)
"""Of several cells of a row that should not be there, the first of these names it."""


def check(
    history: Sequence[UserWrite],
    final: FinalTables,
    skew_us: int,
    reported: Collection[RowId] = (),
) -> Judgement:
    """Every violation in the final rows.

    Read them when all writes have ended, at a level that sees each acknowledged write. `skew_us`
    is how far (µs) a server's clock may have been from that of the machine that recorded.
    `reported` are rows of messages that the product may leave to a person, because events of their
    deletes were lost with a node's disks.
    """
    return Checker(history, final, skew_us, reported).judged()


class Checker:
    """Judges one run, once."""

    def __init__(
        self,
        history: Sequence[UserWrite],
        final: FinalTables,
        skew_us: int,
        reported: Collection[RowId],
    ) -> None:
        self._reported = reported
        self._users = UserCells(history, skew_us)
        self._held = {
            name: {row_id(name, row.values): held_cells(name, row) for row in rows}
            for name, rows in final.items()
        }
        self._snapshot = snapshot_of(lambda name: [row.values for row in final.get(name, ())])
        self._counts: defaultdict[tuple[str, RowId], list[UserWrite]] = defaultdict(list)
        for write in history:
            if write.statement.kind is UserWriteKind.COUNT:
                self._counts[write.statement.table, write.statement.key].append(write)
        self._uids = Counter(key[:2] for key in self._users.rows("imapuidtable"))
        self._judgement = Judgement()
        self._left: set[RowKey] = set()

    def judged(self) -> Judgement:
        """Judge all tables."""
        self._truths()
        for mismatch in differences(self._snapshot):
            self._difference(mismatch)
        self._vanished_flags()
        for table in COUNTER_TABLES.values():
            self._counters(table)
        return self._judgement

    def _truths(self) -> None:
        """Each cell of a truth table must be what its users' writes made it."""
        for name, table in TABLES.items():
            if table.part is not TablePart.TRUTH:
                continue
            rows = self._held.get(name, {})
            for key in sorted(rows.keys() | self._users.rows(name)):
                held = rows.get(key, {})
                cells = held.keys() | self._users.names(name, key) - {MARKER}
                for cell in sorted(cells - table.unjudged):
                    found = held.get(cell, ABSENT)
                    answer = explained(self._users.puts((name, key, cell)), found)
                    self._weaken(answer)
                    if answer is ByUsers.NO:
                        self._report(ViolationName.TRUTH_WRITE, (name, key, cell), found)

    def _difference(self, mismatch: Mismatch) -> None:
        """Name one difference between a projection and its truth."""
        if mismatch.kind in LEFT or self._is_ambiguous(mismatch):
            self._judgement.left.append(str(mismatch))
            if mismatch.projection == MESSAGES:
                self._left.add(mismatch.row)
            return
        if mismatch.kind is DifferenceKind.WRONG_COUNTER:
            return
        table, key_of = PLACES[mismatch.projection]
        key = tuple(canonical(each) for each in key_of(mismatch.row))
        held = self._held.get(table, {}).get(key, {})
        match mismatch.kind:
            case DifferenceKind.MISSING:
                self._missing(table, key)
            case DifferenceKind.EXTRA:
                self._extra(table, key, held)
            case _:
                for cell in wrong_cells(mismatch, self._snapshot, held):
                    self._cell(table, key, cell, held.get(cell, ABSENT))

    def _missing(self, table: str, key: RowId) -> None:
        """A row that the truth has and the projection lacks."""
        readable = TABLES[table].readable
        answers = {
            cell: explained(self._users.puts((table, key, cell)), ABSENT)
            for cell in self._users.names(table, key)
        }
        unexplained = [cell for cell, answer in answers.items() if answer is ByUsers.NO]
        if readable in unexplained:
            name, cell = ViolationName.REMOVED, readable
        elif unexplained and readable == MARKER:
            name, cell = ViolationName.REMOVED, min(unexplained)
        elif unexplained:
            name, cell = ViolationName.LOST, min(unexplained)
        else:
            self._weaken(min(answers.values(), default=ByUsers.YES))
            name, cell = ViolationName.NOT_CONVERGED, readable
        self._report(name, (table, key, cell), ABSENT)

    def _extra(self, table: str, key: RowId, held: Mapping[str, Held]) -> None:
        """A row that the truth does not have."""
        named = {cell: cell_name(self._users.puts((table, key, cell)), held[cell]) for cell in held}
        cell = min(sorted(named), key=lambda each: WORST.index(named[each][0]))
        name, answer = named[cell]
        self._weaken(answer)
        self._report(name, (table, key, cell), held[cell])

    def _cell(self, table: str, key: RowId, cell: str, held: Held) -> None:
        name, answer = cell_name(self._users.puts((table, key, cell)), held)
        self._weaken(answer)
        self._report(name, (table, key, cell), held)

    def _vanished_flags(self) -> None:
        """A mailbox's list of user flags only grows: nothing explains a flag that is gone."""
        table = "applicableflag"
        told = {(each.table, each.key, each.cell) for each in self._judgement.violations}
        for key in sorted(self._users.rows(table)):
            held = self._held.get(table, {}).get(key, {})
            for cell in sorted(self._users.names(table, key) - held.keys()):
                gone = explained(self._users.puts((table, key, cell)), ABSENT) is ByUsers.NO
                if gone and (table, key, cell) not in told:
                    self._report(ViolationName.LOST, (table, key, cell), ABSENT)

    def _counters(self, table: CounterTable) -> None:
        allowed = margins(table, self._snapshot, self._left)
        for owner, wanted in wanted_sums(table, self._snapshot).items():
            row = self._snapshot.counted.get(table.projection, {}).get(owner, {})
            for counter in table.counters:
                value = row.get(counter) or 0
                margin = allowed.get((owner, counter), CounterMargin())
                if not -margin.less <= value - wanted[counter] <= margin.more:
                    self._counter(table.table, owner, counter, (value, wanted))

    def _counter(
        self, table: str, owner: UUID | str, counter: str, values: tuple[int, Counter[str]]
    ) -> None:
        """A counter that is wrong: what it is, and what all of the row must be.

        Of a row that was deleted it is not known which deltas came after the delete.
        """
        value, wanted = values[0], values[1][counter]
        key = (canonical(owner),)
        users = user_sum(self._counts[table, key], counter)
        name, answer = counter_name(users, value, wanted)
        if self._users.deletes(table, key):
            name, answer = ViolationName.NOT_CONVERGED, ByUsers.MAYBE
        self._weaken(answer)
        evidence = {
            "value": value,
            "truth": wanted,
            "users": {"sum": users.once, "from": users.lowest, "to": users.highest},
        }
        self._judgement.violations.append(Violation(name, table, key, counter, evidence))

    def _is_ambiguous(self, mismatch: Mismatch) -> bool:
        """A message with several UIDs in the mailbox, of which one delete removed all; or reported.

        Of a row without a truth it is then not known whether its user deleted it.
        """
        if mismatch.projection != MESSAGES or mismatch.kind is not DifferenceKind.EXTRA:
            return False
        if tuple(canonical(each) for each in mismatch.row) in self._reported:
            return True
        mailboxid = str(mismatch.mailboxid)
        return any(self._uids[str(each), mailboxid] > 1 for each in mismatch.messageids)

    def _weaken(self, answer: ByUsers) -> None:
        self._judgement.weakened += answer is ByUsers.MAYBE

    def _report(self, name: ViolationName, place: tuple[str, RowId, str], held: Held) -> None:
        evidence = cell_evidence(self._users.puts(place), held)
        self._judgement.violations.append(Violation(name, *place, evidence))


def wrong_cells(mismatch: Mismatch, snapshot: Snapshot, held: Mapping[str, Held]) -> Iterator[str]:
    """The cells of a row that differ from the truth; of a set the elements that do."""
    for column in mismatch.columns:
        if mismatch.projection == APPLICABLE_FLAGS:
            yield element_name("userflags", column)
            continue
        elements = _wanted_elements(mismatch, column, snapshot)
        if elements is None:
            yield column
        else:
            wanted = {element_name(column, each) for each in elements}
            yield from sorted(wanted ^ {each for each in held if each.startswith(f"{column}.")})


def _wanted_elements(mismatch: Mismatch, column: str, snapshot: Snapshot) -> list[JsonValue] | None:
    """What the truth has of a set; None if the column is none."""
    if mismatch.projection == LIST_RIGHTS:
        return list((snapshot.lists[mismatch.mailboxid] or {}).get(str(mismatch.uid), ""))
    if column == "userflags":
        return list(snapshot.truth[mismatch.row][0][column] or ())
    return None

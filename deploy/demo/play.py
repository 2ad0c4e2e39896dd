"""The demo, act by act: servers, tables, reconciler, users and faults, quiet, judgement."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

from cassandra.cluster import Session

from checkpoints.codec import finding_to_json
from checkpoints.journal import Journal
from deploy import logins
from deploy.comparison.differences import differences
from deploy.comparison.snapshot import read_whole
from deploy.demo.conflicts import report_conflicts
from deploy.demo.incident import Incident
from deploy.demo.oddities import missing_row
from deploy.demo.old_mail import OldMail, end_segment
from deploy.demo.pace import Pace
from deploy.demo.planter import Planter
from deploy.demo.show import Scene, Screen
from deploy.demo.sight import Quiet, Sight, slow_readings
from deploy.demo.stream import Stream
from deploy.demo.users import Users
from deploy.demo.verdict import Exhibits, Line, judged
from deploy.embedded import Stack
from deploy.embedded.cql import as_admin
from deploy.embedded.errors import StartError
from deploy.embedded.jars import ROOT
from deploy.embedded.wait import until
from deploy.mailserver.connection import connected
from deploy.mailserver.james import create_schema
from deploy.mailserver.ledger import Ledger, LedgerEntry
from deploy.mailserver.workload import Workload
from reconcilers.declared.families import FAMILIES
from streaming.settings import load
from streaming.tables.own_keyspace import open_own
from streaming.tables.session import disconnect

REPORT = ROOT / "build" / "report.html"
LOOK_EVERY_S = 1.0
LONGEST_FIRST_LOOK_S = 900.0
LONGEST_WORK_S = 1800.0
LONGEST_WAIT_FOR_THE_END_S = 1800.0
"""Counters are corrected last: each is counted several times, a delay apart, when all is quiet.

The bounds end a demo that hangs: a slow machine only takes longer.
"""


class TooSlowError(Exception):
    """Nothing can be judged: the machine did not keep the pace. The text names what was slow."""


@dataclass(frozen=True, slots=True)
class Play:
    """One run in one folder."""

    workload: Workload
    folder: Path
    screen: Screen
    pace: Pace = field(default_factory=Pace)

    def run(self, stack: Stack, stream: Stream, ending: ExitStack) -> Exhibits:
        """All acts on a stack that is up. ``ending`` ends the stream.

        Raises TooSlowError, StreamDiedError, embedded's StartError.
        """
        with connected("127.0.0.1", stack.cassandra_port, **as_admin(stack.spec)) as session:
            self.screen.say(f"creating James's tables in keyspace {stack.keyspace}")
            ledger = Ledger(self.folder / "ledger.jsonl")
            with stack.unsupervised():  # and so without change capture
                create_schema(session, stack.keyspace)
                self.screen.say("mail is there already, and some of it was damaged long ago")
                old = OldMail(Planter(session, stack.keyspace, ledger, self.workload.seed))
                end_segment(session)
            if stack.spec.tls is not None:
                self.screen.say(logins.TOLD)
                logins.prepare(stack, session)
            self.screen.say("starting `reconcile stream --mode repair`")
            ending.enter_context(stream)
            ending.callback(self.screen.say, "stopping the reconciler")
            self.screen.say("turning change capture on, so that the agent sees the tables")
            stack.capture_tables()
            stream.wait_until_watching()
            self.screen.say(f"the page with its status and open findings: {stream.page}")
            self._lose_a_first_row(session, stack.keyspace, stream, ledger)
            old.open()
            self._let_users_work(session, stack.keyspace, stream, ledger)
            self._sweep(stream)
            conflicts = report_conflicts(stream, self.screen)
            with journal_of(stream.config) as journal:
                look = partial(evidence_of, session, stack.keyspace, journal, conflicts)
                evidence = self._await_the_end(stream, ledger, partial(look, ledger.settle()))
                if judged(evidence).fine:
                    planter = Planter(session, stack.keyspace, ledger, self.workload.seed)
                    Incident(stack, session, stream, self.screen).run(planter)
                    evidence = self._await_the_end(stream, ledger, partial(look, ledger.settle()))
            write_report(stream, REPORT)
        return evidence

    def _lose_a_first_row(
        self, session: Session, keyspace: str, stream: Stream, ledger: Ledger
    ) -> None:
        """Once through the chain alone: what it starts at its first row is not measured later."""
        self.screen.say("watching: a first row is lost, and must be found")
        missing_row(Planter(session, keyspace, ledger, self.workload.seed))
        until(
            lambda: bool((stream.sight() or Sight()).findings),
            LONGEST_FIRST_LOOK_S,
            f"a lost row is found (see {stream.log})",
            LOOK_EVERY_S,
        )

    def _let_users_work(
        self, session: Session, keyspace: str, stream: Stream, ledger: Ledger
    ) -> None:
        work = self.workload
        faults = sum(plan.count for plan in work.fault_plans())
        self.screen.say(
            f"found: {work.operations} mail operations follow, {work.rate:.0f} a second from"
            f" {work.workers} workers, {faults} of their statements meet a fault"
        )
        deadline = time.monotonic() + LONGEST_WORK_S
        with Users(session, keyspace, work, ledger, self.pace.looked_at) as users:
            while users.working():
                if time.monotonic() > deadline:
                    raise StartError(f"the users are not done after {LONGEST_WORK_S:.0f} s")
                self._show("users at work", stream, ledger)
                time.sleep(LOOK_EVERY_S)

    def _sweep(self, stream: Stream) -> None:
        """What is older than the stream, and what nobody has touched."""
        self.screen.say("`reconcile sweep` compares everything, beside the stream")
        for line in stream.command("sweep"):
            self.screen.say(f"  {line}")

    def _await_the_end(
        self, stream: Stream, ledger: Ledger, look: Callable[[], Exhibits]
    ) -> Exhibits:
        """Until nothing happens to rows any more, and all tables and findings are as they must be.

        Returns what was there then, or at the deadline. Raises TooSlowError where it is not judged.
        """
        self.screen.say("all is written: waiting until nothing is left to repair or to verify")
        quiet = Quiet(self.pace.quiet)
        doing, was_quiet = "waiting for quiet", False
        deadline = time.monotonic() + LONGEST_WAIT_FOR_THE_END_S
        while time.monotonic() < deadline:
            sight = self._show(doing, stream, ledger)
            if sight is not None and quiet.reached(sight):
                was_quiet = True
                evidence = look()
                verdict = judged(evidence)
                if verdict.fine:
                    return evidence
                doing = f"quiet, but {len(verdict.problems)} things are not yet as they must be"
            elif sight is not None:
                doing = quiet.waits_for(sight)
            time.sleep(LOOK_EVERY_S)
        given_up = f"{doing} after {LONGEST_WAIT_FOR_THE_END_S:.0f} s"
        sight = stream.sight()
        slow = [] if sight is None else slow_readings(sight, self.pace, time.time())
        if slow and not was_quiet:
            raise TooSlowError(
                f"{given_up}: this machine is too slow, or something hangs. {'; '.join(slow)};"
                f" log: {stream.log}"
            )
        self.screen.say(f"{given_up}, judging what is there; log: {stream.log}")
        return look()

    def _show(self, doing: str, stream: Stream, ledger: Ledger) -> Sight | None:
        sight = stream.sight()
        statements, faults = ledger.progress()
        if sight is not None:
            self.screen.show(Scene(doing, statements, faults, sight))
        return sight


def write_report(stream: Stream, file: Path) -> None:
    """`reconcile report` as HTML. Raises StreamDiedError."""
    file.parent.mkdir(exist_ok=True)
    stream.command("report", "--html", str(file))


@contextmanager
def journal_of(config: Path) -> Iterator[Journal]:
    """The reconciler's own journal, as its settings name it."""
    settings = load(config, {})
    try:
        yield open_own(settings).journal
    finally:
        disconnect(settings.cassandra)


def evidence_of(
    session: Session,
    keyspace: str,
    journal: Journal,
    conflicts: Sequence[Line],
    entries: Sequence[LedgerEntry],
) -> Exhibits:
    """The ledger's entries, what the journal says now, and the full comparison of all tables.

    `conflicts` of mailboxes are no findings of the journal, and stand beside them.
    """
    tables = read_whole(session, keyspace)
    return Exhibits(
        entries=entries,
        log=[line for day in days_since(entries[0].time) for line in journal.log(day)],
        standing=[
            finding_to_json(finding, family)
            for family in FAMILIES
            for finding in journal.open_findings(family)
        ]
        + [*conflicts],
        differences=list(differences(tables)),
        roots=tables.roots,
        breakers={each.value: why for each, why in journal.breakers().items()},
    )


def days_since(time: datetime) -> Iterator[date]:
    """The days (UTC) from then to now: a demo may run through midnight."""
    day = time.astimezone(UTC).date()
    while day <= datetime.now(UTC).date():
        yield day
        day += timedelta(days=1)

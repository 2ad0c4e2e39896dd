"""A pilot: what it takes, that all else is held with its name, and how it is begun and ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from types import SimpleNamespace
from uuid import UUID, uuid1

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from checkpoints.pauses import Resumed
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import QuotaRoot
from reconcilers.limits.gate import Admission
from reconcilers.limits.pause import PILOT, Pause, why_paused
from reconcilers.limits.pilot import Pilot
from reconcilers.limits.write_target import EVERYTHING, WriteTarget, correction_of, repair_of
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.model import Kind, Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming import app
from streaming.commands.arguments import people
from streaming.commands.person import pilot as command
from streaming.commands.person.resume import ResumeDesk
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.pause_report import PauseReport
from streaming.steps.pauses import OWNERS_FOR, PauseWatch
from streaming.steps.permit import Permit
from tests.builders.failing import unreachable
from tests.builders.indexes import DELETED, LISTS
from tests.builders.rows import NOW
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.pauses import MemoryPauses

OF_BOB, OF_ALICE, GONE = uuid1(), uuid1(), uuid1()
OWNERS = {OF_BOB: QuotaRoot("#private", "bob"), OF_ALICE: QuotaRoot("#private", "alice")}
BOBS_QUOTA, ALICES_QUOTA = (str(each) for each in OWNERS.values())
BOB = Pilot(users=frozenset({"bob"}))
BY = Resumed(NOW + 1, "carol", "it went well")


def missing_in(mailbox: UUID) -> WriteTarget:
    return repair_of(LISTS, Kind.MISSING_ROW, Slot(mailbox, 1))


# --- what it takes -------------------------------------------------------------------------------


def only(**limits: object) -> Pilot:
    """A pilot that names one thing of each of these."""
    return Pilot(**{name: frozenset({named}) for name, named in limits.items()})  # type: ignore[arg-type]


TABLE = {
    "a user's mailbox": (BOB, missing_in(OF_BOB), True),
    "another's": (BOB, missing_in(OF_ALICE), False),
    "nobody's": (BOB, missing_in(GONE), False),
    "a user's quota": (BOB, correction_of(CURRENT_QUOTA, BOBS_QUOTA), True),
    "another's quota": (BOB, correction_of(CURRENT_QUOTA, ALICES_QUOTA), False),
    "the counters of a user's mailbox": (BOB, correction_of(MAILBOX_COUNTERS, OF_BOB), True),
    "of another's": (BOB, correction_of(MAILBOX_COUNTERS, OF_ALICE), False),
    "a mailbox": (only(mailboxes=OF_ALICE), missing_in(OF_ALICE), True),
    "another mailbox": (only(mailboxes=OF_ALICE), missing_in(OF_BOB), False),
    "the quota of a mailbox's user": (
        only(mailboxes=OF_BOB),
        correction_of(CURRENT_QUOTA, BOBS_QUOTA),
        False,
    ),
    "a user's, or a mailbox": (only(users="bob", mailboxes=OF_ALICE), missing_in(OF_ALICE), True),
    "a system": (only(systems=LISTS.name), missing_in(GONE), True),
    "another system": (only(systems=DELETED.name), missing_in(GONE), False),
    "a kind": (only(kinds=Kind.MISSING_ROW), missing_in(GONE), True),
    "another kind": (only(kinds=Kind.EXTRA_ROW), missing_in(GONE), False),
    "a user's, of another kind": (
        only(users="bob", kinds=Kind.EXTRA_ROW),
        missing_in(OF_BOB),
        False,
    ),
    "no single place": (BOB, EVERYTHING, True),
    "what a person undoes": (BOB, repair_of(LISTS, Kind.MISSING_ROW), True),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_a_pilot_takes(case: str) -> None:
    pilot, target, taken = TABLE[case]
    assert pilot.takes(target, OWNERS.get) is taken


NAMES = st.frozensets(st.sampled_from(["bob", "alice"]))
MAILBOXES = st.frozensets(st.sampled_from([OF_BOB, OF_ALICE, GONE]))
SYSTEMS = st.frozensets(st.sampled_from([LISTS.name, DELETED.name]))
KINDS = st.frozensets(st.sampled_from([Kind.MISSING_ROW.value, Kind.EXTRA_ROW.value]))


@given(
    st.builds(Pilot, NAMES, MAILBOXES, SYSTEMS, KINDS),
    st.sampled_from([OF_BOB, OF_ALICE, GONE]),
    st.sampled_from([LISTS, DELETED]),
    st.sampled_from([Kind.MISSING_ROW, Kind.EXTRA_ROW]),
)
def test_it_takes_what_is_named_in_each_of_its_limits(pilot, mailbox, projection, kind) -> None:  # type: ignore[no-untyped-def]
    owner = OWNERS.get(mailbox)
    there = mailbox in pilot.mailboxes or (owner is not None and owner.user in pilot.users)
    anywhere = not pilot.users and not pilot.mailboxes
    expected = (
        (anywhere or there)
        and projection.name in (pilot.systems or {projection.name})
        and kind in (pilot.kinds or {kind})
    )
    assert pilot.takes(repair_of(projection, kind, Slot(mailbox, 1)), OWNERS.get) is expected


# --- what is held --------------------------------------------------------------------------------


def begun(pilot: Pilot = BOB, asked_at: int = NOW) -> Pause:
    return Pause(PILOT, asked_at, "carol", "a first try", pilot=pilot)


OUTSIDE = "outside the pilot of carol: a first try (only user bob)"
OUTSIDE_IT = Waiting(Wait.PILOT, OUTSIDE)


def test_what_is_outside_is_held_and_says_of_what() -> None:
    assert why_paused([begun()], missing_in(OF_ALICE), NOW, OWNERS.get) == OUTSIDE_IT
    assert why_paused([begun()], missing_in(OF_BOB), NOW, OWNERS.get) is None


def test_a_pause_holds_up_what_the_pilot_takes() -> None:
    pause = Pause("all", NOW + 1, "alice", "a look")
    why = why_paused([begun(), pause], missing_in(OF_BOB), NOW + 1, OWNERS.get)
    assert str(why) == "paused by alice: a look"


def test_while_two_stand_only_what_both_take_is_repaired() -> None:
    both = [begun(), begun(Pilot(systems=frozenset({DELETED.name})), NOW + 1)]
    assert why_paused(both, missing_in(OF_BOB), NOW, OWNERS.get) is not None
    taken = repair_of(DELETED, Kind.EXTRA_ROW, Slot(OF_BOB, 1))
    assert why_paused(both, taken, NOW, OWNERS.get) is None


def test_a_worker_may_write_what_the_pilot_takes_and_nothing_else() -> None:
    pauses = MemoryPauses()
    pauses.begin(begun())
    permit = Permit(Admission(), lambda: None, watch(pauses).why)
    assert permit.admits(LISTS, Kind.MISSING_ROW, Slot(OF_BOB, 1)).repairs_wait is None
    assert permit.admits(LISTS, Kind.MISSING_ROW, Slot(OF_ALICE, 1)).repairs_wait == OUTSIDE_IT


class Asked:
    """Says whose a mailbox is, and remembers being asked."""

    def __init__(self) -> None:
        self.times: list[UUID] = []

    def __call__(self, mailbox: UUID) -> QuotaRoot | None:
        self.times.append(mailbox)
        return OWNERS.get(mailbox)


def watch(pauses: MemoryPauses, owner=OWNERS.get, steady=lambda: 0.0) -> PauseWatch:  # type: ignore[no-untyped-def]
    return PauseWatch(pauses, lambda: NOW, steady, owner)


def test_an_owner_is_read_once_a_minute_also_of_what_is_nobodys() -> None:
    pauses, owner, now = MemoryPauses(), Asked(), [0.0]
    pauses.begin(begun())
    asking = watch(pauses, owner, lambda: now[0])
    for at in (0.0, OWNERS_FOR, OWNERS_FOR + 0.1):
        now[0] = at
        asking.why(missing_in(OF_ALICE))
        asking.why(missing_in(GONE))
    assert owner.times == [OF_ALICE, GONE] * 2


def test_a_pause_that_is_begun_while_an_owner_is_read_is_obeyed() -> None:
    pauses, now = MemoryPauses(), [0.0]
    pauses.begin(begun())

    def slow(mailbox: UUID) -> QuotaRoot | None:
        now[0] += 8
        pauses.begin(Pause("all", NOW, "alice", "a look"))
        return OWNERS.get(mailbox)

    why = watch(pauses, slow, lambda: now[0]).why(missing_in(OF_BOB))
    assert str(why) == "paused by alice: a look"


def test_a_quota_that_is_nobodys_is_outside() -> None:
    assert not BOB.takes(correction_of(CURRENT_QUOTA, "no root"), OWNERS.get)


def test_where_no_user_is_named_no_owner_is_read() -> None:
    pauses, owner = MemoryPauses(), Asked()
    pauses.begin(begun(Pilot(mailboxes=frozenset({OF_BOB}))))
    assert watch(pauses, owner).why(missing_in(OF_ALICE)) is not None
    assert owner.times == []


def test_where_nobody_says_whose_it_is_nothing_is_written() -> None:
    pauses = MemoryPauses()
    pauses.begin(begun())
    with pytest.raises(Unreachable):
        watch(pauses, unreachable).why(missing_in(OF_BOB))


def test_where_it_may_not_be_read_whose_it_is_nothing_of_a_users_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(_mailbox: UUID) -> QuotaRoot | None:
        raise Refused("no SELECT permission on mailbox")

    pauses = MemoryPauses()
    pauses.begin(begun())
    assert watch(pauses, refused).why(missing_in(OF_BOB)) == OUTSIDE_IT
    assert "no SELECT permission on mailbox" in caplog.text


def test_a_pilot_is_shown_apart_from_pauses_and_its_end_lets_go() -> None:
    pauses, metrics, now = MemoryPauses(), Metrics(CollectorRegistry()), [0.0]
    report = PauseReport(watch(pauses, steady=lambda: now[0]), metrics)

    def shown() -> dict[str, float | None]:
        read = metrics.registry.get_sample_value
        reasons = ("pause", "pilot")
        return {each: read("reconciler_repairs_paused", {"reason": each}) for each in reasons}

    pauses.begin(begun())
    assert not report.is_over()
    assert shown() == {"pause": 0, "pilot": 1}
    pauses.end(begun(), BY)
    now[0] += 2
    assert report.is_over()
    assert shown() == {"pause": 0, "pilot": 0}


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> MemoryPauses:
    kept, times = MemoryPauses(), iter(range(NOW, NOW + 100))
    theirs = {OWNERS[each]: {each} for each in OWNERS}
    monkeypatch.setattr(command, "pauses_of", lambda settings: kept)
    monkeypatch.setattr(people, "now_micros", lambda: next(times))
    monkeypatch.setattr(command, "connect", lambda settings: None)
    monkeypatch.setattr(
        command,
        "CounterTables",
        lambda *_: SimpleNamespace(
            mailboxes=lambda root: theirs.get(root, set()), owner=OWNERS.get
        ),
    )
    return kept


def reconcile(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert app.main(["pilot", *words]) == 0
    return capsys.readouterr().out.splitlines()


def pilots(pauses: MemoryPauses) -> list[Pilot | None]:
    return [each.pilot for each in pauses.standing()]


def test_it_is_begun_changed_shown_and_ended(
    pauses: MemoryPauses, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reconcile(capsys) == [command.NONE]
    who = ("--who", "carol", "--reason", "a first try")
    first, _ = reconcile(capsys, "--user", "bob", *who)
    assert first == "only user bob is repaired: pilot of carol: a first try"
    assert reconcile(capsys) == [first]
    words = ("--user", "bob", "--user", "alice", "--system", "messages", "--kind", "missing_row")
    wider, _ = reconcile(capsys, *words, *who)
    assert wider.startswith("only user alice, bob, system messages, kind missing_row is repaired")
    assert pilots(pauses) == [
        Pilot(
            frozenset({"bob", "alice"}),
            systems=frozenset({"messages"}),
            kinds=frozenset({"missing_row"}),
        )
    ]
    assert reconcile(capsys, "--end") == [f"ended: {wider}"]
    assert reconcile(capsys, "--end") == [command.NONE]
    assert pilots(pauses) == []


class Killed(MemoryPauses):
    """Lives to see so many writes."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.writes = writes

    def begin(self, pause: Pause) -> None:
        self._one_more()
        super().begin(pause)

    def replace(self, before: Collection[Pause], pause: Pause, by: Resumed) -> None:
        self._one_more()
        super().replace(before, pause, by)

    def end(self, pause: Pause, by: Resumed) -> None:
        self._one_more()
        super().end(pause, by)

    def _one_more(self) -> None:
        if not self.writes:
            raise Unreachable("no host answered")
        self.writes -= 1


@pytest.mark.parametrize("writes", [1, 2])
def test_wherever_a_change_is_killed_one_pilot_stands(writes: int) -> None:
    kept, after = Killed(writes), begun(Pilot(systems=frozenset({"messages"})), NOW + 1)
    kept.begin(begun())
    with suppress(Unreachable):
        list(command.begin(kept, after))
    (standing,) = kept.standing()
    assert standing == (begun() if writes == 1 else after)


def test_the_one_before_is_ended_by_who_begins_another() -> None:
    kept, after = MemoryPauses(), begun(Pilot(systems=frozenset({"messages"})), NOW + 1)
    kept.begin(begun())
    list(command.begin(kept, after))
    by = Resumed(NOW + 1, "carol", "another pilot: a first try")
    assert kept.history() == ((begun(), by), (after, None))


def test_a_user_without_a_mailbox_is_named(
    pauses: MemoryPauses, capsys: pytest.CaptureFixture[str]
) -> None:
    note, *_ = reconcile(capsys, "--user", "bbo")
    assert note == "NOTE: bbo has no mailbox: is the name right?"
    assert len(pilots(pauses)) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--system", "mesages"), "did you mean messages?"),
        (("--kind", "missing-row"), "did you mean missing_row?"),
        (("--mailbox", "INBOX"), "is not a mailbox id (a UUID)"),
    ],
)
def test_what_it_cannot_name_is_refused(
    words: Iterable[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app.main(["pilot", *words])
    assert told in capsys.readouterr().err


@pytest.mark.usefixtures("pauses")
def test_its_end_takes_no_scope(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["pilot", "--end", "--user", "bob"]) == 2
    assert "--end ends the whole pilot" in capsys.readouterr().err


@pytest.mark.usefixtures("pauses")
def test_a_time_alone_is_no_pilot(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["pilot", "--for", "2h"]) == 2
    assert "name what is to be repaired until then" in capsys.readouterr().err


def test_resume_ends_pauses_and_no_pilot() -> None:
    kept = MemoryPauses()
    kept.begin(begun())
    kept.begin(Pause("all", NOW + 1, "alice", "a look"))
    journal = MemoryJournal()
    desk = ResumeDesk(kept, journal, BY)
    ends = desk.asked([], [])
    assert ends.told(BY) == ["pause of all, paused by alice: a look"]
    desk.end(ends)
    assert kept.standing() == (begun(),)

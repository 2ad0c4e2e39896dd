"""Of two tables of quotas the one that James writes is kept; if that is not known, none is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from checkpoints.codec import write_from_json, write_to_json
from reconcilers.counters.live_table import (
    APART,
    WRITTEN,
    Choice,
    TableUse,
    choose,
    choose_again,
    use_of,
)
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA, QUOTA_CURRENT_VALUE
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Sum, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.limits.write_target import correction_of
from reconcilers.rows.finding import State
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.commands.wiring.kept_tallies import chosen, one_table_each
from streaming.counters.counter_row import CounterRows
from streaming.counters.live_table import READ_EVERY, LiveTables
from streaming.settings import Settings
from tests.builders.counters import FAMILIES, OF_BOB, OF_MAILBOX, Bench, K, undo_of
from tests.builders.rows import MAILBOX
from tests.contract.making import a_finding
from tests.fakes.checked_cluster import JAMES, NEWER

NOW, ROOT = 1_800_000_000_000_000, "#private&ana@example.org"
BOTH, SHAPES = JAMES | NEWER, (CURRENT_QUOTA, QUOTA_CURRENT_VALUE)
times = st.none() | st.integers(NOW - 3 * APART, NOW)


def uses(older: int | None, newer: int | None) -> list[TableUse]:
    return [TableUse(CURRENT_QUOTA, older), TableUse(QUOTA_CURRENT_VALUE, newer)]


# --- which ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "newer", "kept"),
    [
        (NOW, None, CURRENT_QUOTA),
        (None, NOW, QUOTA_CURRENT_VALUE),
        (NOW, NOW - APART, CURRENT_QUOTA),
        (NOW - APART, NOW, QUOTA_CURRENT_VALUE),
        (NOW, NOW - APART + 1, None),
        (NOW - APART + 1, NOW, None),
        (NOW, NOW, None),
        (None, None, None),
    ],
    ids=[
        "only the older has rows",
        "only the newer has rows",
        "compatibility mode, after the migration",
        "the older was left behind",
        "the older was written somewhat later",
        "the newer was written somewhat later",
        "both at once",
        "no rows yet",
    ],
)
def test_the_table_that_james_writes_is_kept(
    older: int | None, newer: int | None, kept: Tally | None
) -> None:
    assert choose(uses(older, newer)).kept == kept


@given(older=times, newer=times)
def test_the_order_of_the_tables_is_no_reason(older: int | None, newer: int | None) -> None:
    found = uses(older, newer)
    made = choose(found)
    assert made.kept == choose(found[::-1]).kept
    others = [each.newest for each in found if each.tally != made.kept and each.newest is not None]
    if made.kept is not None:
        (kept,) = (each.newest for each in found if each.tally == made.kept)
        assert kept is not None
        assert all(kept >= other + APART for other in others)


def newer_row(identifier: str, component: str, quotatype: str, at: int) -> dict[str, Any]:
    row = {"identifier": identifier, "quotacomponent": component, "quotatype": quotatype}
    return {**row, WRITTEN: at}


def test_only_quotas_of_mail_tell_when_a_table_was_written() -> None:
    """SIEVE and JMAP write the newer table in compatibility mode, too."""
    others = [
        newer_row(f"{ROOT}@example.org", "SIEVE", "size", NOW),
        newer_row("ana@example.org", "JMAP_UPLOADS", "size", NOW),
        newer_row(ROOT, "MAILBOX", "count", NOW),
    ]
    assert use_of(QUOTA_CURRENT_VALUE, others) == TableUse(QUOTA_CURRENT_VALUE)
    hers = newer_row(f"{ROOT}@example.org", "MAILBOX", "size", NOW - 7)
    assert use_of(QUOTA_CURRENT_VALUE, [*others, hers]).newest == NOW - 7
    rows = [{"quotaroot": root, WRITTEN: NOW} for root in (ROOT, f"{ROOT}@example.org")]
    assert use_of(CURRENT_QUOTA, rows[:1]).newest == NOW
    assert use_of(CURRENT_QUOTA, rows[1:]).newest is None


def test_a_setting_chooses_and_another_table_is_refused() -> None:
    for table in ("currentquota", "quotacurrentvalue"):
        settings = Settings.model_validate({"tally": {"quota_table": table}})
        tables = {each.table for family in settings.families() for each in family.tallies}
        assert tables == {table, MAILBOX_COUNTERS.table}
    with pytest.raises(ValidationError, match="quota_table"):
        Settings.model_validate({"tally": {"quota_table": "maxquota"}})


def test_nothing_is_chosen_where_one_table_exists() -> None:
    def never(_shapes: object) -> Choice:
        raise AssertionError

    for schema in (JAMES, NEWER, {}):
        assert chosen((USER_TALLY,), schema, never) == []


@pytest.mark.parametrize("kept", [*SHAPES, None])
def test_what_is_not_chosen_is_left_out(kept: Tally | None) -> None:
    families = (USER_TALLY,)
    found = chosen(families, BOTH, lambda shapes: Choice(kept, "so it is"))
    assert [each.shapes for each in found] == [SHAPES]
    (family,) = one_table_each(families, found)
    assert family.tallies == (() if kept is None else (kept,))


# --- while the stream runs -----------------------------------------------------------------------


@pytest.mark.parametrize("last", [CURRENT_QUOTA, QUOTA_CURRENT_VALUE, None])
def test_the_table_that_alone_was_written_since_is_kept(last: Tally | None) -> None:
    was, before = Choice(last, "so it was"), uses(NOW, NOW)
    assert choose_again(was, before, uses(NOW, NOW)) == was
    assert choose_again(was, before, uses(NOW + 1, NOW)).kept == CURRENT_QUOTA
    assert choose_again(was, before, uses(NOW, NOW + 1)).kept == QUOTA_CURRENT_VALUE
    assert choose_again(was, before, uses(NOW + 1, NOW + 1)).kept is None
    assert choose_again(was, uses(None, None), uses(NOW, None)).kept == CURRENT_QUOTA
    assert choose_again(was, uses(NOW, NOW), uses(None, None)) == was


@dataclass
class Written:
    """When both tables were written last, as James does; how often that was read."""

    older: int | None = NOW
    newer: int | None = None
    read_times: int = 0
    now: float = 0.0
    refused: Exception | None = None
    live: LiveTables = field(init=False)

    def __post_init__(self) -> None:
        self.live = LiveTables.of(FAMILIES_WITH_BOTH, self.read, lambda: self.now)

    def read(self, shapes: Sequence[Tally]) -> list[TableUse]:
        assert tuple(shapes) == SHAPES
        self.read_times += 1
        if self.refused is not None:
            raise self.refused
        return uses(self.older, self.newer)

    def later(self) -> Written:
        self.now += READ_EVERY
        return self

    @property
    def kept(self) -> Tally | None:
        (kept,) = self.live.kept()
        assert [each for each in SHAPES if self.live.is_kept(each)] == ([kept] if kept else [])
        assert self.live.is_kept(MAILBOX_COUNTERS)
        return kept

    def why(self, tally: Tally, paused: Waiting | None = None) -> Waiting | None:
        return self.live.unless_other(lambda _: paused)(correction_of(tally))


FAMILIES_WITH_BOTH = (FAMILIES[0], replace(USER_TALLY, tallies=SHAPES))


def test_what_james_writes_is_kept_from_the_next_sample_on() -> None:
    """No table is known at first; compatibility mode, then its migration, then without the mode."""
    james = Written(NOW, NOW)
    assert james.kept is None
    james.older = NOW + 1
    assert james.later().kept == CURRENT_QUOTA
    assert james.later().kept == CURRENT_QUOTA
    james.older, james.newer = NOW + 2, NOW + 2
    assert james.later().kept is None
    assert james.later().kept is None
    james.newer = NOW + 3
    assert james.later().kept == QUOTA_CURRENT_VALUE


def test_a_sample_is_read_now_and_then() -> None:
    james = Written()
    for _ in range(100):
        assert james.why(CURRENT_QUOTA) is None
        assert james.kept == CURRENT_QUOTA
    assert james.read_times == 1
    assert james.later().kept == CURRENT_QUOTA
    assert james.read_times == 2


@pytest.mark.parametrize("failure", [Refused("no SELECT"), ReadFailed("tombstones")])
def test_what_may_not_be_read_keeps_none_and_holds_up_no_other(failure: Exception) -> None:
    james = Written(refused=failure)
    assert james.kept is None
    assert james.why(MAILBOX_COUNTERS) is None
    told = james.why(CURRENT_QUOTA)
    assert told is not None
    assert str(failure) in str(told)
    james.refused = None
    assert james.later().kept == CURRENT_QUOTA


@pytest.mark.parametrize("failure", [Refused("no SELECT"), ReadFailed("tombstones")])
@pytest.mark.parametrize("older", [NOW, NOW + 1], ids=["all stands still", "James has written"])
def test_after_a_reading_that_failed_it_is_kept_again(failure: Exception, older: int) -> None:
    james = Written(NOW, NOW)
    assert james.kept is None
    james.older = NOW + 1
    assert james.later().kept == CURRENT_QUOTA
    james.refused = failure
    assert james.later().kept is None
    james.refused, james.older = None, older + 1
    assert james.later().kept == CURRENT_QUOTA


def test_what_was_not_known_is_asked_again_though_nothing_is_written() -> None:
    james = Written(NOW, NOW)
    assert james.kept is None
    james.newer = None  # the table was truncated
    assert james.later().kept == CURRENT_QUOTA
    james.older = None
    assert james.later().kept == CURRENT_QUOTA


def test_only_the_table_that_james_writes_is_corrected() -> None:
    james = Written()
    assert james.why(CURRENT_QUOTA) is None
    told = james.why(QUOTA_CURRENT_VALUE)
    assert told is not None
    assert told.wait is Wait.OTHER_TABLE
    assert told.why.startswith(
        "James may not write quotacurrentvalue any more: only currentquota has"
    )
    paused = Waiting(Wait.PAUSE, "paused by ana")
    assert james.why(CURRENT_QUOTA, paused) == paused
    only_one = LiveTables.of(FAMILIES, james.read, lambda: 0.0)
    assert only_one.kept() == ()
    assert only_one.unless_other(lambda _: None)(correction_of(CURRENT_QUOTA)) is None


def test_counters_change_in_the_table_that_is_kept() -> None:
    james = Written(NOW, NOW)
    rows = CounterRows(FAMILIES_WITH_BOTH, Bench().owners, james.live.is_kept)
    older, newer = (replace(OF_BOB, tally=each) for each in SHAPES)
    assert list(rows.of_mailbox(MAILBOX)) == [OF_MAILBOX]
    found = replace(a_finding(USER_TALLY, OF_BOB.slot), projection=CURRENT_QUOTA.name)
    assert list(rows.of_finding(found)) == []
    james.newer = NOW + 1
    james.later()
    assert list(rows.of_mailbox(MAILBOX)) == [OF_MAILBOX, newer]
    assert list(rows.of_finding(found)) == [newer]
    james.older = NOW + 1
    james.later()
    assert list(rows.of_mailbox(MAILBOX)) == [OF_MAILBOX, older]


def test_a_quota_is_held_when_james_has_begun_to_write_the_other_table() -> None:
    bench, james = Bench(), Written()
    assert james.kept == CURRENT_QUOTA
    bench.correcting = replace(bench.correcting, pauses=james.live.unless_other(bench.pauses))
    bench.watch.correcting = bench.correcting
    bench.with_wrong_quota(count=3, size=300)
    bench.with_wrong_counter()
    james.newer = NOW + 1
    james.later()
    bench.look(K)
    held = bench.open_finding(OF_BOB)
    assert held.state is State.HELD
    assert "James may not write currentquota any more" in held.told
    assert [each.tally for each in bench.tables.added] == [MAILBOX_COUNTERS]


# --- corrections of the other table ---------------------------------------------------------------


def sent_to(tally: Tally, kept: Tally) -> AddToCounter:
    """As it is read from the journal, where another table may be kept by now."""
    family = replace(USER_TALLY, tallies=(tally,))
    write = AddToCounter(tally, Slot(ROOT), ROOT, round=1, deltas={Sum.COUNT: 2})
    read = write_from_json(write_to_json(write, family), replace(USER_TALLY, tallies=(kept,)))
    assert isinstance(read, AddToCounter)
    return read


@pytest.mark.parametrize("kept", SHAPES)
@pytest.mark.parametrize("tally", SHAPES)
def test_a_correction_stays_one_of_the_table_that_it_was_sent_to(tally: Tally, kept: Tally) -> None:
    assert sent_to(tally, kept).tally == tally


def test_a_correction_of_the_other_table_is_not_undone_in_this() -> None:
    undoing = undo_of(Bench(), replace(USER_TALLY, tallies=(QUOTA_CURRENT_VALUE,)))
    repair = replace(a_finding(USER_TALLY, Slot(ROOT)), writes=(sent_to(CURRENT_QUOTA, SHAPES[1]),))
    assert undoing.plan(repair) == "it was added to currentquota, which is not kept any more"

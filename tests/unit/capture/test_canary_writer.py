"""Canaries: one a second, by one process, each naming the last that was acknowledged."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event

import pytest

from checkpoints.lease import Holder, Lease
from reconcilers.capture.chain import Mark
from reconcilers.capture.frontier import Canary, Node
from reconcilers.words.errors import AlreadyRunning, Refused, Unreachable
from reconcilers.words.model import Micros
from streaming.canary.writer import (
    LEASE_EVERY,
    RING_RESTS,
    CanaryKeeper,
    CanaryWriter,
    PlacedCanaries,
)
from tests.builders.rows import NOW, SECOND
from tests.fakes.checkpoints.lease import MemoryLease


def in_lanes(number: int, at: Micros) -> dict[int, Mark]:
    """A canary that was written in the lanes of `Plan`."""
    return dict.fromkeys((1, 4), Mark(number, at))


@dataclass
class Plan:
    """Which lanes are written."""

    lanes: Sequence[int] = (1, 4)
    partitions: int = 2
    asked: list[Collection[int]] = field(default_factory=list)

    def of(self, place: str, used: Collection[int]) -> Sequence[int]:
        self.asked.append(used)
        return self.lanes


@dataclass
class Table:
    """Two nodes; of those that are ``silent`` no answer comes."""

    written: list[Canary] = field(default_factory=list)
    lanes: list[dict[int, Canary]] = field(default_factory=list)
    there: dict[Node, dict[int, Mark]] = field(
        default_factory=lambda: {"n1": {}, "n2": in_lanes(7, NOW - SECOND)}
    )
    silent: set[Node] = field(default_factory=set)
    tokens: str = "ring"
    moving: bool = False
    fails: list[Exception] = field(default_factory=list)
    nodes: Sequence[Node] = ("n1", "n2")
    proves_nothing: Refused | None = None

    def check(self) -> None:
        if self.proves_nothing is not None:
            raise self.proves_nothing

    def places(self) -> Mapping[Node, str]:
        return {node: f"{node}/0" for node in self.nodes}

    def name(self) -> str:
        return self.tokens

    @property
    def ring(self) -> Table:
        return self

    def steady(self) -> bool:
        return not self.moving

    def newest(self) -> dict[Node, dict[int, Mark]]:
        return self.there

    def write(self, places: PlacedCanaries, partitions: int) -> frozenset[Node]:
        if self.fails:
            raise self.fails.pop()
        assert partitions == 2
        self.lanes += [dict(lanes) for lanes in places.values()]
        self.written += [lanes[max(lanes)] for lanes in places.values()]
        nodes = [lanes[max(lanes)].node for lanes in places.values()]
        assert list(places) == [f"{node}/0" for node in nodes]
        return frozenset(nodes) - self.silent


@dataclass
class Process:
    """One that writes canaries, on clocks set by hand; every wait is taken down."""

    table: Table = field(default_factory=Table)
    now: Micros = NOW
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    wrong: str | None = None
    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        self.leases = MemoryLease(lambda: self.seconds)

    def writer(self) -> CanaryWriter:
        made = CanaryWriter(self.table, self.plan, Clock(self))
        made.begin()
        return made

    def keeper(self) -> CanaryKeeper:
        writer = CanaryWriter(self.table, self.plan, Clock(self))
        us, lasts = Holder("one", "host:1"), timedelta(seconds=60)
        lease = Lease(self.leases, "canary", us, lasts, lambda: self.seconds)
        return CanaryKeeper(writer, lease, interval=1.0)

    def of(self, node: Node) -> list[tuple[int, int]]:
        return [(each.number, each.previous) for each in self.table.written if each.node == node]


@dataclass
class Clock:
    """That of a process."""

    process: Process

    def now(self) -> Micros:
        return self.process.now

    def steady(self) -> float:
        return self.process.seconds

    def trouble(self) -> str | None:
        return self.process.wrong


@pytest.fixture
def process() -> Process:
    return Process()


def test_each_node_gets_one_in_its_lanes(process: Process) -> None:
    process.writer().write()
    assert [each.node for each in process.table.written] == ["n1", "n2"]
    assert [list(each) for each in process.table.lanes] == [[1, 4], [1, 4]]


def test_each_names_the_last_before_it_that_was_acknowledged(process: Process) -> None:
    writer = process.writer()
    writer.write()
    process.now += SECOND
    process.table.silent = {"n1"}
    writer.write()
    process.now += SECOND
    process.table.silent = set()
    writer.write()
    assert process.of("n1") == [(NOW + 1, 0), (NOW + 2, NOW + 1), (NOW + 3, NOW + 1)]
    assert process.of("n2") == [(8, 7), (9, 8), (10, 9)]


def test_they_are_numbered_one_by_one_whatever_the_clock_does(process: Process) -> None:
    writer = process.writer()
    for step in (0, -3_600, 365 * 86_400):
        process.now += step * SECOND
        writer.write()
    assert [number for number, _ in process.of("n2")] == [8, 9, 10]


def test_in_a_table_that_was_made_anew_numbers_go_on_above_those_before(process: Process) -> None:
    writer = process.writer()
    writer.write()
    process.now += SECOND
    process.table.there["n1"] = {}
    writer.begin()
    writer.write()
    (before, _), (after, previous) = process.of("n1")
    assert (after > before, previous) == (True, 0)


def test_another_process_goes_on_after_the_newest_that_is_there(process: Process) -> None:
    process.table.there["n1"] = in_lanes(90, NOW - SECOND)
    process.writer().write()
    assert process.of("n1") == [(91, 90)]
    assert process.table.written[0].idle == SECOND


def test_a_node_that_does_not_answer_at_first_is_begun_when_it_does(process: Process) -> None:
    """The others are not kept waiting."""
    there = process.table.there
    process.table.there = {"n2": in_lanes(7, NOW)}
    process.table.nodes = ("n1", "n2")
    writer = process.writer()
    writer.write()
    assert (process.of("n1"), len(process.of("n2"))) == ([], 1)
    process.table.there = there | {"n1": in_lanes(90, NOW)}
    writer.write()
    assert process.of("n1") == [(91, 90)]


def test_one_that_was_not_answered_still_counts_for_the_next_number(process: Process) -> None:
    writer = process.writer()
    process.table.silent = {"n1"}
    writer.write()
    writer.write()
    assert process.of("n1") == [(NOW + 1, 0), (NOW + 2, 0)]


def test_while_nodes_come_and_go_it_is_said_so_and_for_a_minute_after_a_change(
    process: Process,
) -> None:
    writer = process.writer()
    steady: list[bool] = []

    def write() -> None:
        writer.write()
        steady.append(process.table.written[-1].steady)

    def a_minute() -> None:
        process.seconds += RING_RESTS - 1
        write()
        process.seconds += 1
        write()

    write()
    process.table.moving = True
    write()
    process.table.moving = False
    a_minute()
    process.table.tokens = "another ring"
    write()
    writer.begin()
    a_minute()
    assert steady == [True, False, False, True, False, False, True]


def test_a_node_that_takes_none_is_named_once_and_again_when_it_does(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    writer = process.writer()
    with caplog.at_level(logging.INFO, "reconciler"):
        for process.table.silent in ({"n2"}, {"n2"}, set(), set()):
            writer.write()
    told = [each for each in caplog.messages if "n2" in each]
    assert told == [
        "node n2 takes no canary: what is captured there is not known",
        "node n2 takes canaries again",
    ]


# --- lanes ----------------------------------------------------------------------------------------


def test_in_a_lane_that_was_not_in_use_none_is_named_before(process: Process) -> None:
    """Partitions were added: what came by the others is not missed where this lane leads."""
    writer = process.writer()
    writer.write()
    process.plan.lanes = (1, 4, 9)
    writer.write()
    writer.write()
    of_n2 = process.table.lanes[1::2]
    named = [{lane: each.previous for lane, each in lanes.items()} for lanes in of_n2]
    assert named == [{1: 7, 4: 7}, {1: 8, 4: 8, 9: 0}, {1: 9, 4: 9, 9: 9}]


def test_the_lanes_that_were_in_use_are_told_also_those_of_the_process_before(
    process: Process,
) -> None:
    process.table.there["n2"] = in_lanes(7, NOW) | {0: Mark(5, NOW)}
    writer = process.writer()
    writer.write()
    process.plan.lanes = (4, 9)
    writer.write()
    writer.write()
    assert [list(each) for each in process.plan.asked[1::2]] == [[1, 4], [1, 4], [4, 9]]


def test_a_lane_that_is_in_use_again_names_its_own_last_one(process: Process) -> None:
    process.table.there["n2"] = in_lanes(7, NOW) | {0: Mark(5, NOW)}
    process.plan.lanes = (0, 1)
    process.writer().write()
    assert {lane: each.previous for lane, each in process.table.lanes[1].items()} == {0: 5, 1: 7}


# --- one process at a time ------------------------------------------------------------------------


class Turns(Event):
    """Ends after so many waits; each passes its time."""

    def __init__(self, process: Process, most: int) -> None:
        super().__init__()
        self.process, self.most = process, most

    def wait(self, timeout: float | None = None) -> bool:
        self.process.waits.append(timeout or 0)
        self.process.seconds += timeout or 0
        self.process.now += round((timeout or 0) * SECOND)
        if len(self.process.waits) >= self.most:
            self.set()
        return self.is_set()


def test_one_is_written_every_second_while_the_lease_is_held(process: Process) -> None:
    process.keeper().run(Turns(process, 200))
    assert len(process.of("n1")) == 200
    assert set(process.waits) == {1.0}
    assert process.leases.held_by("canary") is None


def test_the_lease_never_ends_while_they_are_written(process: Process) -> None:
    asked: list[float] = []

    class Taken(MemoryLease):
        def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
            asked.append(process.seconds)
            return super().take(name, holder, lasts)

    process.leases = Taken(lambda: process.seconds)
    process.keeper().run(Turns(process, 100))
    assert asked == [0.0, 20.0, 40.0, 60.0, 80.0]


def test_while_another_process_holds_it_none_is_written_and_it_is_asked_for_again(
    process: Process,
) -> None:
    process.leases.take("canary", Holder("other", "host:2"), timedelta(seconds=60))
    process.keeper().run(Turns(process, 8))
    assert process.waits[:6] == [LEASE_EVERY] * 6
    assert len(process.table.written) > 0
    assert process.of("n1")[0][0] > NOW + 60 * SECOND


def test_a_failure_is_tried_again(process: Process) -> None:
    process.table.fails = [Unreachable("no host answered")]
    process.keeper().run(Turns(process, 3))
    assert len(process.of("n1")) == 2


def test_a_failure_that_lasts_is_said_once(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    process.table.fails = [Unreachable("no host answered") for _ in range(5)]
    with caplog.at_level(logging.WARNING, "reconciler"):
        process.keeper().run(Turns(process, 8))
    assert caplog.messages == ["no canary is written: no host answered"]


def test_each_says_how_long_ago_one_was_sent_before_it(process: Process) -> None:
    """So that a node that was away is no time without canaries."""
    writer = process.writer()
    process.table.silent = {"n1"}
    writer.write()
    process.now += SECOND
    writer.write()
    idle = [each.idle for each in process.table.written if each.node == "n1"]
    assert idle == [0, SECOND]


# --- a clock that is wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["the clock of 10.0.0.1 differs from ours by 99.0 s", "no proof"])
def test_while_our_clock_is_wrong_or_they_prove_nothing_none_is_written_and_another_process_may(
    process: Process, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    process.wrong = why if "clock" in why else None
    process.table.proves_nothing = None if process.wrong else Refused(why)
    one = process.keeper()
    with caplog.at_level(logging.INFO, "reconciler"):
        one.run(Turns(process, 3))
        assert caplog.messages == [f"no canary is written: {why}"]
        assert process.table.written == []
        assert process.leases.held_by("canary") is None
        process.wrong = process.table.proves_nothing = None
        one.run(Turns(process, 6))
    assert caplog.messages[1:] == ["writing canaries"]
    assert len(process.of("n1")) == 3


def test_a_clock_that_goes_wrong_while_canaries_are_written_gives_up_the_lease(
    process: Process,
) -> None:
    class Wrong(Turns):
        def wait(self, timeout: float | None = None) -> bool:
            if len(process.waits) == 2:
                process.wrong = "it stepped"
            return super().wait(timeout)

    process.keeper().run(Wrong(process, 5))
    assert len(process.of("n1")) == 3
    assert process.waits[3:] == [LEASE_EVERY, LEASE_EVERY]
    assert process.leases.held_by("canary") is None


def test_a_clock_that_cannot_be_measured_is_tried_again(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing(Clock):
        left = 2

        def trouble(self) -> str | None:
            if self.left:
                self.left -= 1
                raise Refused("asking n1 for its time: no right")
            return super().trouble()

    one = process.keeper()
    one.writer.clock = Refusing(process)
    with caplog.at_level(logging.INFO, "reconciler"):
        one.run(Turns(process, 5))
    told = ["no canary is written: asking n1 for its time: no right", "writing canaries"]
    assert caplog.messages == told
    assert len(process.of("n1")) == 3


# --- canaries begin anew --------------------------------------------------------------------------


def test_canaries_that_begin_anew_are_above_all_that_were_heard_and_miss_none(
    process: Process,
) -> None:
    """The table's numbers are those of an older copy, or of a clock that was ahead."""
    process.table.there = {"n1": in_lanes(NOW + 10**9, NOW), "n2": in_lanes(7, NOW)}
    process.keeper().begin_anew(NOW + 10**8)
    assert process.of("n1") == [(NOW + 10**9 + 1, 0)]
    assert process.of("n2") == [(NOW + 10**8 + 1, 0)]
    assert {each.idle for each in process.table.written} == {0}
    assert process.leases.held_by("canary") is None


def test_without_any_number_that_is_known_the_clock_gives_it(process: Process) -> None:
    """Rows that somebody deleted are hidden until a number is above the time of that."""
    process.table.there = {"n1": {}, "n2": in_lanes(7, NOW)}
    process.keeper().begin_anew(0)
    assert (process.of("n1"), process.of("n2")) == ([(NOW + 1, 0)], [(NOW + 1, 0)])


def test_while_another_process_writes_them_canaries_do_not_begin_anew(process: Process) -> None:
    process.leases.take("canary", Holder("other", "host:2"), timedelta(seconds=60))
    with pytest.raises(AlreadyRunning):
        process.keeper().begin_anew(0)
    assert process.table.written == []


def test_with_a_wrong_clock_canaries_do_not_begin_anew(process: Process) -> None:
    process.wrong = "it stepped"
    with pytest.raises(Refused, match="it stepped"):
        process.keeper().begin_anew(0)
    assert process.table.written == []


def test_a_node_that_took_none_is_named_when_canaries_begin_anew(process: Process) -> None:
    process.table.silent = {"n2"}
    with pytest.raises(Unreachable, match="n2"):
        process.keeper().begin_anew(0)
    assert process.leases.held_by("canary") is None

"""Where a fresh checkpoint starts: nothing that had not come out may lie before it."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints.batch_bookmarks import BatchBookmark, safe_start
from checkpoints.bookmarks import Offsets, after

WINDOW = 5_000
DELAY = 45_000
TOPIC = "james.mail.imapuidtable"
Key = tuple[int, int]


def a_bookmark(
    batch_id: int, batch_time: int, watermark: int, checkpoint: str = "one"
) -> BatchBookmark:
    """A batch of ten records, in one partition."""
    start, end = {TOPIC: {0: batch_id * 10}}, {TOPIC: {0: batch_id * 10 + 10}}
    return BatchBookmark("message", checkpoint, batch_id, batch_time, watermark, start, end)


def test_nothing_recorded_is_nothing_to_start_from() -> None:
    assert safe_start([], WINDOW) is None


def test_the_start_is_that_of_the_oldest_batch_that_is_still_held() -> None:
    run = [a_bookmark(n, 100_000 + n * 5_000, 100_000 + n * 5_000 - DELAY) for n in range(20)]
    # the last ran under 150,000: of batch 9 (at 145,000) the window has ended, of 10 not yet
    assert run[-1].watermark == 150_000
    assert safe_start(run, WINDOW) == {TOPIC: {0: 100}}


def test_a_window_that_ends_at_the_watermark_has_come_out() -> None:
    held = [a_bookmark(0, 100_000, 0), a_bookmark(1, 200_000, 104_999)]
    out = [a_bookmark(0, 100_000, 0), a_bookmark(1, 200_000, 105_000)]
    assert safe_start(held, WINDOW) == {TOPIC: {0: 0}}
    assert safe_start(out, WINDOW) == {TOPIC: {0: 10}}


def test_when_all_has_come_out_the_start_is_the_end() -> None:
    run = [a_bookmark(n, 100_000 + n, 100_000 + n) for n in (3, 4, 5)]
    assert safe_start(run, 0) == {TOPIC: {0: 60}}


def test_the_order_in_which_batches_were_recorded_says_nothing() -> None:
    run = [a_bookmark(n, 100_000 + n * 5_000, 100_000 + n * 5_000 - DELAY) for n in range(20)]
    assert safe_start(run[::-1], WINDOW) == safe_start(run, WINDOW)


def test_a_batch_behind_its_own_watermark_was_dropped_and_is_read_again() -> None:
    run = [
        a_bookmark(0, 3_700_000, 0),
        a_bookmark(1, 100_000, 3_655_000),  # the clock stepped back by an hour
        a_bookmark(2, 3_800_000, 3_655_000),
        a_bookmark(3, 3_900_000, 3_755_000),
    ]
    assert safe_start(run, WINDOW) == {TOPIC: {0: 10}}


def test_a_batch_without_a_bookmark_counts_with_the_next() -> None:
    run = [
        a_bookmark(0, 100_000, 0),
        a_bookmark(2, 110_000, 104_000),
        a_bookmark(3, 111_000, 105_000),
    ]
    assert safe_start(run, WINDOW) == {TOPIC: {0: 10}}


def test_what_lies_between_two_batches_begins_where_the_earlier_of_them_ended() -> None:
    run = [
        a_bookmark(0, 100_000, 0),
        a_bookmark(1, 101_000, 0),
        a_bookmark(3, 110_000, 0),
        a_bookmark(4, 200_000, 107_000),
    ]
    assert safe_start(run, WINDOW) == {TOPIC: {0: 20}}


def test_a_batch_that_was_executed_again_counts_once() -> None:
    again = a_bookmark(1, 200_000, 104_999)
    assert safe_start([a_bookmark(0, 100_000, 0), again, again], WINDOW) == {TOPIC: {0: 0}}


def test_only_the_last_checkpoint_counts_because_it_began_at_the_safe_start() -> None:
    old = [a_bookmark(n, 100_000 + n, 0, "old") for n in range(3)]
    fresh = [a_bookmark(0, 100, 0, "new")]
    assert safe_start([*old, *fresh], WINDOW) == {TOPIC: {0: 0}}
    later = [
        BatchBookmark("message", "new", 0, 100, 0, {TOPIC: {0: 70}}, {TOPIC: {0: 80}}),
    ]
    assert safe_start([*old, *later], WINDOW) == {TOPIC: {0: 70}}


def test_a_checkpoint_whose_first_batches_are_not_known_falls_back_on_the_one_before() -> None:
    old = [a_bookmark(n, 100_000 * n, 100_000 * n - DELAY, "old") for n in range(5)]
    fresh = [a_bookmark(7, 100_000, 0, "new")]
    assert safe_start([*old, *fresh], WINDOW) == {TOPIC: {0: 40}}


def test_what_came_out_needs_no_first_batch() -> None:
    run = [a_bookmark(7, 100_000, 0), a_bookmark(8, 200_000, 105_000)]
    assert safe_start(run, WINDOW) == {TOPIC: {0: 80}}


def test_what_only_one_of_two_checkpoints_read_is_read_again_from_there() -> None:
    old = BatchBookmark(
        "message", "old", 0, 100_000, 0, {TOPIC: {0: 40}, "gone": {0: 3}}, {TOPIC: {0: 50}}
    )
    fresh = BatchBookmark(
        "message", "new", 7, 200_000, 0, {TOPIC: {0: 70, 1: 5}, "added": {0: 9}}, {TOPIC: {0: 80}}
    )
    expected = {TOPIC: {0: 40, 1: 0}, "gone": {0: 3}, "added": {0: 0}}
    assert safe_start([old, fresh], WINDOW) == expected


def test_when_the_beginning_is_not_known_there_is_no_safe_start() -> None:
    assert safe_start([a_bookmark(7, 100_000, 0)], WINDOW) is None
    assert safe_start([a_bookmark(4, 100_000, 0, "old"), a_bookmark(7, 1, 0)], WINDOW) is None


def test_a_partition_without_a_start_was_read_from_its_beginning() -> None:
    first = BatchBookmark("message", "one", 0, 100_000, 0, {}, {TOPIC: {0: 6}})
    second = BatchBookmark("message", "one", 1, 101_000, 0, {TOPIC: {0: 6}}, {TOPIC: {0: 7, 1: 4}})
    third = BatchBookmark(
        "message", "one", 2, 102_000, 0, {TOPIC: {0: 7, 1: 4}}, {TOPIC: {0: 7, 1: 4}}
    )
    assert safe_start([first, second, third], WINDOW) == {TOPIC: {0: 0, 1: 0}}


def test_a_partition_first_read_by_a_batch_without_a_bookmark_starts_at_its_beginning() -> None:
    one = BatchBookmark("message", "one", 0, 100_000, 0, {TOPIC: {0: 5}}, {TOPIC: {0: 6}})
    three = BatchBookmark(
        "message", "one", 2, 101_000, 0, {TOPIC: {0: 9, 1: 4}}, {TOPIC: {0: 9, 1: 9}}
    )
    assert safe_start([one, three], WINDOW) == {TOPIC: {0: 5, 1: 0}}


def test_a_partition_that_appears_later_starts_where_it_was_first_read() -> None:
    one = BatchBookmark("message", "one", 0, 100_000, 0, {TOPIC: {0: 5}}, {TOPIC: {0: 6}})
    two = BatchBookmark(
        "message", "one", 1, 101_000, 0, {TOPIC: {0: 6, 1: 0}, "b": {0: 3}},
        {TOPIC: {0: 7, 1: 4}, "b": {0: 9}},
    )  # fmt: skip
    assert safe_start([one, two], WINDOW) == {TOPIC: {0: 5, 1: 0}, "b": {0: 3}}


def test_a_partition_of_the_third_batch_starts_where_it_was_first_read() -> None:
    end = {TOPIC: {0: 9, 1: 9}}
    third = BatchBookmark("message", "one", 2, 102_000, 0, {TOPIC: {0: 20, 1: 4}}, end)
    run = [a_bookmark(0, 100_000, 0), a_bookmark(1, 101_000, 0), third]
    assert safe_start(run, WINDOW) == {TOPIC: {0: 0, 1: 4}}


def test_the_recording_time_only_goes_up() -> None:
    assert after(None, 100) == 100
    assert after(50, 100) == 100
    assert after(100, 100) == 101
    assert after(3_600, 100) == 3_601


# --- a model of the settle window, its clock and its crashes --------------------------------------

MODEL_DELAY = 9_000
"""Short against the model's steps, so that windows at every stage are met."""


@dataclass
class Checkpoint:
    """Spark's state: where it reads next, the keys it holds by the end of their window."""

    name: str
    position: dict[int, int]
    batch_id: int = 0
    watermark: int = 0
    held: list[tuple[int, Key]] = field(default_factory=list)


@dataclass
class Model:
    """A stream over partitions that fill; `came_out` are the keys that left the window."""

    clock: int = 10_000_000
    ends: dict[int, int] = field(default_factory=lambda: {0: 0})
    bookmarks: list[BatchBookmark] = field(default_factory=list)
    came_out: set[Key] = field(default_factory=set)
    checkpoint: Checkpoint = field(default_factory=lambda: Checkpoint("0", {}))
    unrecorded: int = 0

    def fresh(self) -> None:
        """The checkpoint is lost: a new one begins at the safe start."""
        offsets: Offsets = safe_start(self.bookmarks, WINDOW) or {}
        name = str(int(self.checkpoint.name) + 1)
        self.checkpoint = Checkpoint(name, dict(offsets.get(TOPIC, {})))
        self.unrecorded = 0

    def batch(self, step: int, written: dict[int, int], recorded: bool) -> None:
        """The clock moves, records arrive, one batch runs."""
        here = self.checkpoint
        recorded = recorded or self.clock + step < here.watermark
        # A batch without a bookmark counts with the next: the clock must not step back between.
        self.clock += step if recorded and not self.unrecorded else abs(step)
        for partition, count in written.items():
            self.ends[partition] = self.ends.get(partition, 0) + count
        start = {partition: here.position.get(partition, 0) for partition in self.ends}
        window_end = self.clock // WINDOW * WINDOW + WINDOW
        for partition, first in start.items():
            for offset in range(first, self.ends[partition]):
                if window_end > here.watermark:
                    here.held.append((window_end, (partition, offset)))
        self.came_out |= {key for end, key in here.held if end <= here.watermark}
        here.held = [(end, key) for end, key in here.held if end > here.watermark]
        here.position = dict(self.ends)
        if recorded:
            self.bookmarks.append(self._bookmark(start))
        self.unrecorded = 0 if recorded else self.unrecorded + 1
        here.batch_id += 1
        here.watermark = max(here.watermark, self.clock - MODEL_DELAY)

    def _bookmark(self, start: dict[int, int]) -> BatchBookmark:
        here = self.checkpoint
        offsets = ({TOPIC: start}, {TOPIC: dict(self.ends)})
        times = (self.clock, here.watermark)
        return BatchBookmark("message", here.name, here.batch_id, *times, *offsets)

    def lost(self) -> set[Key]:
        """Keys before the safe start that never came out."""
        offsets: Offsets = safe_start(self.bookmarks, WINDOW) or {}
        before = {
            (partition, offset)
            for partition, end in offsets.get(TOPIC, {}).items()
            for offset in range(end)
        }
        return before - self.came_out


steps = st.one_of(
    st.integers(0, 8_000),
    st.integers(0, 8_000),
    st.integers(-20_000, 60_000),
    st.sampled_from([-3_600_000, -100_000, 100_000, 3_600_000]),
)
writings = st.dictionaries(st.integers(0, 2), st.integers(0, 3), max_size=3)
batches = st.tuples(steps, writings, st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=400, deadline=None)
@given(st.lists(batches, min_size=1, max_size=60))
def test_nothing_that_had_not_come_out_lies_before_the_safe_start(
    history: list[tuple[int, dict[int, int], int, int]],
) -> None:
    model = Model()
    for step, written, record, crash in history:
        model.batch(step, written, recorded=record > 0)
        assert model.lost() == set()
        if crash == 0:
            model.fresh()
            assert model.lost() == set()


@given(st.lists(st.integers(1_000, 8_000), min_size=40, max_size=60))
def test_on_a_steady_clock_no_more_than_the_delay_and_the_window_is_read_again(
    history: list[int],
) -> None:
    model = Model()
    for step in history:
        model.batch(step, {0: 1}, recorded=True)
    start = safe_start(model.bookmarks, WINDOW)
    assert start is not None
    oldest = model.bookmarks[start[TOPIC][0]]
    assert model.clock - oldest.batch_time <= MODEL_DELAY + WINDOW + 2 * max(history)

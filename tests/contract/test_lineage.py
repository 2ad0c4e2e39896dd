"""Lineage's contract: the same for the fake and for Cassandra."""

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from checkpoints.cassandra import CassandraLineage, Store
from checkpoints.clock import now_micros
from checkpoints.lineage import Lineage
from reconcilers.rows.deletes import Deletes, OwnDelete, ProjectionDelete, RowDeletes, TruthDelete
from reconcilers.rows.memory import Entry, Watching
from reconcilers.words.model import KeyValue, Micros, Slot
from tests.builders.slots import mailbox_of, uid_of
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.stack.streams import until

AT = 1_700_000_000_000_000


@pytest.fixture
def lineage(real: Store | None) -> Lineage:
    return MemoryLineage(now_micros) if real is None else CassandraLineage(real)


def an_entry(uid: int = 1, in_truth: str = "in truth", recorded_at: int | None = AT) -> Entry:
    return Entry(uuid.uuid1(), Slot(uuid.uuid1(), uid), in_truth == "in truth", recorded_at)


def only(lineage: Lineage, messageid: KeyValue) -> Entry:
    """The message's one entry, the same both ways round."""
    (entry,) = lineage.of_sources([messageid])[messageid]
    slot = entry.slot
    assert lineage.of_slots([slot]) == {slot: [entry]}
    return entry


def test_what_was_remembered_is_found_both_ways_round(lineage: Lineage) -> None:
    entry = an_entry()
    slot = entry.slot
    lineage.remember([entry])
    assert lineage.of_sources([entry.source]) == {entry.source: [entry]}
    assert lineage.of_slots([slot]) == {slot: [entry]}
    assert list(lineage.of_group(entry.slot.group)) == [(slot, entry.source)]


def test_a_part_of_a_group_comes_in_the_order_of_its_second_key_column(lineage: Lineage) -> None:
    entries = [an_entry(uid) for uid in (9, 2, 30, 4)]
    mailbox = entries[0].slot.group
    entries = [replace(each, slot=Slot(mailbox, uid_of(each.slot))) for each in entries]
    lineage.remember([*entries, an_entry(5)])
    found = [uid_of(slot) for slot, _ in lineage.of_group_from(mailbox, 4)]
    assert found == [4, 9, 30]
    assert list(lineage.of_group_from(mailbox, 31)) == []


def test_what_was_not_is_left_out(lineage: Lineage) -> None:
    entry = an_entry()
    lineage.remember([entry])
    assert lineage.of_sources([]) == {}
    assert lineage.of_sources([uuid.uuid1()]) == {}
    assert lineage.of_slots([]) == {}
    assert lineage.of_slots([Slot(entry.slot.group, 2), Slot(uuid.uuid1(), 1)]) == {}
    assert list(lineage.of_group(uuid.uuid1())) == []


@pytest.mark.parametrize("recorded_at", [AT, None])
@pytest.mark.parametrize("in_truth", ["in truth", "projection only"])
def test_every_shape_of_an_entry(lineage: Lineage, in_truth: str, recorded_at: int | None) -> None:
    entry = an_entry(in_truth=in_truth, recorded_at=recorded_at)
    lineage.remember([entry])
    assert only(lineage, entry.source) == entry
    lineage.expire([entry])
    assert only(lineage, entry.source) == replace(entry, expiring=True)
    lineage.remember([replace(entry, expiring=True)])
    assert only(lineage, entry.source) == entry


def test_a_message_in_several_places_and_a_slot_with_several_messages(lineage: Lineage) -> None:
    first = an_entry()
    copy_here = replace(first, slot=Slot(first.slot.group, 2))
    copy_elsewhere = replace(first, slot=Slot(uuid.uuid1(), 1))
    another = replace(first, source=uuid.uuid4())
    lineage.remember([first, copy_here, copy_elsewhere, another])
    found = lineage.of_sources([first.source, another.source, first.source])
    assert set(found[first.source]) == {first, copy_here, copy_elsewhere}
    assert len(found[first.source]) == 3
    assert found[another.source] == [another]
    slot = Slot(first.slot.group, 1)
    assert set(lineage.of_slots([slot])[slot]) == {first, another}
    assert set(lineage.of_group(first.slot.group)) == {
        (slot, first.source),
        (slot, another.source),
        (Slot(first.slot.group, 2), first.source),
    }


def test_remembering_twice_changes_nothing(lineage: Lineage) -> None:
    entry = an_entry()
    lineage.remember([entry, entry])
    lineage.remember([entry])
    assert lineage.of_sources([entry.source]) == {entry.source: [entry]}


def test_what_the_truth_had_is_never_taken_back(lineage: Lineage) -> None:
    entry = an_entry()
    lineage.remember([entry])
    lineage.remember([replace(entry, in_truth=False, recorded_at=None)])
    assert only(lineage, entry.source) == entry


def test_what_was_missing_is_added(lineage: Lineage) -> None:
    entry = an_entry(in_truth="projection only", recorded_at=None)
    lineage.remember([entry])
    lineage.remember([replace(entry, in_truth=True, recorded_at=AT)])
    assert only(lineage, entry.source) == replace(entry, in_truth=True, recorded_at=AT)


def test_many_at_once(lineage: Lineage) -> None:
    mailboxes = [uuid.uuid1() for _ in range(3)]
    entries = [
        Entry(uuid.uuid4(), Slot(mailboxes[n % 3], n), n % 2 == 0, AT + n) for n in range(1000)
    ]
    lineage.remember(entries)
    found = lineage.of_sources([entry.source for entry in entries] + [uuid.uuid4()])
    assert found == {entry.source: [entry] for entry in entries}
    slots = [entry.slot for entry in entries]
    by_slot = lineage.of_slots([*slots, Slot(mailboxes[0], 5000)])
    assert by_slot == {slot: [entry] for slot, entry in zip(slots, entries, strict=True)}
    assert len(list(lineage.of_group(mailboxes[0]))) == 334


def test_truth_deletes_by_uid_and_by_range(lineage: Lineage) -> None:
    message, mailbox = uuid.uuid1(), uuid.uuid1()
    assert lineage.truth_deletes(message, mailbox) == Deletes()
    lineage.remember_deletes([TruthDelete(message, (mailbox, None), AT)])
    lineage.remember_deletes([TruthDelete(message, (mailbox, None), AT)])
    lineage.remember_deletes([TruthDelete(message, (mailbox, None), AT + 1)])
    lineage.remember_deletes([TruthDelete(message, (mailbox, 4), AT + 2)])
    lineage.remember_deletes([TruthDelete(message, (uuid.uuid1(), 5), AT + 3)])
    lineage.remember_deletes([TruthDelete(uuid.uuid1(), (mailbox, 6), AT + 4)])
    assert lineage.truth_deletes(message, mailbox) == Deletes(
        frozenset({AT, AT + 1}), {Slot(mailbox, 4): frozenset({AT + 2})}
    )


def test_projection_deletes_are_of_one_row(lineage: Lineage) -> None:
    slot = Slot(uuid.uuid1(), 3)
    assert lineage.projection_deletes(slot) == RowDeletes()
    lineage.remember_deletes([ProjectionDelete(slot, AT)])
    lineage.remember_deletes([ProjectionDelete(slot, AT + 1)])
    lineage.remember_deletes([ProjectionDelete(slot, AT)])
    lineage.remember_deletes([ProjectionDelete(Slot(mailbox_of(slot), 4), AT + 2)])
    assert lineage.projection_deletes(slot) == RowDeletes(frozenset({AT, AT + 1}))


def test_the_event_of_our_own_delete_is_none_of_a_users(lineage: Lineage) -> None:
    """Its event comes after it was remembered, and may come again."""
    slot = Slot(uuid.uuid1(), 3)
    lineage.remember_deletes([OwnDelete(slot, AT, AT + 50), OwnDelete(slot, AT + 1, AT + 40)])
    for _ in range(2):
        lineage.remember_deletes([ProjectionDelete(slot, AT), ProjectionDelete(slot, AT + 2)])
    assert lineage.projection_deletes(slot) == RowDeletes(frozenset({AT + 2}), sent=AT + 50)


@pytest.mark.parametrize("recorded_at", [AT, None])
def test_when_the_truth_last_had_a_row_is_kept_beside_what_is_known(
    lineage: Lineage, recorded_at: int | None
) -> None:
    entry = an_entry(recorded_at=recorded_at)
    lineage.remember([entry])
    for at in (AT + 5, AT + 9):
        lineage.remember([replace(entry, had_at=at)])
        assert only(lineage, entry.source) == replace(entry, had_at=at)
    lineage.expire([replace(entry, had_at=AT + 9)])
    assert only(lineage, entry.source) == replace(entry, had_at=AT + 9, expiring=True)


def test_deletes_of_many_sources_and_rows_in_few_reads(lineage: Lineage) -> None:
    """A look of a sweep asks for those of thousands; most have none."""
    mailboxes = [uuid.uuid1() for _ in range(3)]
    messages = [uuid.uuid1() for _ in range(250)]
    lineage.remember_deletes(
        [
            TruthDelete(messages[7], (mailboxes[0], None), AT),
            TruthDelete(messages[7], (mailboxes[0], 4), AT + 1),
            TruthDelete(messages[7], (mailboxes[1], None), AT + 2),
            TruthDelete(messages[200], (mailboxes[2], 5), AT + 3),
            ProjectionDelete(Slot(mailboxes[0], 4), AT + 4),
            ProjectionDelete(Slot(mailboxes[0], 4), AT + 5),
            ProjectionDelete(Slot(mailboxes[2], 249), AT + 6),
        ]
    )
    asked: dict[KeyValue, list[KeyValue]] = {
        mailboxes[0]: [*messages],
        mailboxes[2]: [*messages[100:]],
    }
    found = lineage.truth_deletes_of(asked)
    assert found.keys() == {(each, box) for box, some in asked.items() for each in some}
    assert {pair: each for pair, each in found.items() if each != Deletes()} == {
        (messages[7], mailboxes[0]): Deletes(
            frozenset({AT}), {Slot(mailboxes[0], 4): frozenset({AT + 1})}
        ),
        (messages[200], mailboxes[2]): Deletes(
            frozenset(), {Slot(mailboxes[2], 5): frozenset({AT + 3})}
        ),
    }
    slots = [Slot(box, uid) for box in mailboxes for uid in range(250)]
    heard = lineage.projection_deletes_of(slots)
    assert heard.keys() == set(slots)
    assert {slot: each for slot, each in heard.items() if each.ends} == {
        Slot(mailboxes[0], 4): RowDeletes(frozenset({AT + 4, AT + 5})),
        Slot(mailboxes[2], 249): RowDeletes(frozenset({AT + 6})),
    }


def test_many_deletes_at_once(lineage: Lineage) -> None:
    message, mailbox = uuid.uuid1(), uuid.uuid1()
    truth = [TruthDelete(message, (mailbox, uid % 3), AT + uid) for uid in range(500)]
    rows = [ProjectionDelete(Slot(mailbox, uid), AT) for uid in range(500)]
    lineage.remember_deletes([*truth, *rows, *truth])
    by_slot = lineage.truth_deletes(message, mailbox).by_slot
    counts = {uid_of(slot): len(times) for slot, times in by_slot.items()}
    assert counts == {0: 167, 1: 167, 2: 166}
    assert lineage.projection_deletes(Slot(mailbox, 499)) == RowDeletes(frozenset({AT}))
    assert lineage.truth_deletes_in_group(mailbox, AT + 499, AT + 499)


def test_more_of_one_partition_than_a_batch_can_hold(lineage: Lineage) -> None:
    """A purged mailbox, a message that thousands of mailboxes got, and one copied without end."""
    mailbox, message, copied = uuid.uuid1(), uuid.uuid1(), uuid.uuid1()
    deletes = [TruthDelete(uuid.uuid1(), (mailbox, None), AT + n) for n in range(3000)]
    lineage.remember_deletes(deletes)
    last = deletes[-1]
    assert lineage.truth_deletes(last.source, mailbox) == Deletes(frozenset({last.at}))
    everywhere = [Entry(message, Slot(uuid.uuid1(), 1), True, AT) for _ in range(2000)]
    copies = [Entry(copied, Slot(mailbox, uid), True, AT) for uid in range(1, 1501)]
    lineage.remember([*everywhere, *copies])
    found = lineage.of_sources([message, copied])
    assert set(found[message]) == set(everywhere)
    assert set(found[copied]) == set(copies)


def test_truth_deletes_of_a_mailbox_between_two_times(lineage: Lineage) -> None:
    mailbox = uuid.uuid1()
    lineage.remember_deletes([TruthDelete(uuid.uuid1(), (mailbox, None), AT)])
    lineage.remember_deletes([ProjectionDelete(Slot(mailbox, 1), AT + 50)])
    assert lineage.truth_deletes_in_group(mailbox, AT, AT)
    assert lineage.truth_deletes_in_group(mailbox, AT - 5, AT + 5)
    assert not lineage.truth_deletes_in_group(mailbox, AT + 1, AT + 100)
    assert not lineage.truth_deletes_in_group(mailbox, AT - 100, AT - 1)
    assert not lineage.truth_deletes_in_group(uuid.uuid1(), AT - 5, AT + 5)


def test_deletes_that_are_kept_outlive_the_others(
    kind: str, request: pytest.FixtureRequest
) -> None:
    lineage: Lineage = MemoryLineage()
    if kind != "memory":
        store = request.getfixturevalue("store")
        lineage = CassandraLineage(store, deletes_kept=timedelta(seconds=15))
    mailbox, left, gone = uuid.uuid1(), uuid.uuid1(), uuid.uuid1()
    row, sibling, other = (Slot(mailbox, uid) for uid in (1, 2, 3))
    for each in (left, gone):
        lineage.remember_deletes([TruthDelete(each, (mailbox, None), AT)])
    lineage.remember_deletes([TruthDelete(left, (mailbox, 1), AT + 1)])
    lineage.remember_deletes([OwnDelete(row, AT + 7, AT + 9)])
    lineage.remember_deletes([ProjectionDelete(each, AT + 2) for each in (row, sibling, other)])
    lineage.keep_deletes({(left, mailbox): [row, sibling]})
    if isinstance(lineage, MemoryLineage):
        lineage.forget()
    until("the others are forgotten", lambda: not lineage.projection_deletes(other).ends)
    until("the others are forgotten", lambda: not lineage.truth_deletes(gone, mailbox).ranges)
    assert lineage.truth_deletes(left, mailbox) == Deletes(
        frozenset({AT}), {row: frozenset({AT + 1})}
    )
    assert lineage.projection_deletes(row) == RowDeletes(frozenset({AT + 2}), sent=AT + 9)
    assert lineage.projection_deletes(sibling) == RowDeletes(frozenset({AT + 2}))


def test_watching_begins_anew_and_no_sweep_from_before_counts(lineage: Lineage) -> None:
    lineage.watch_from(AT, "tables")
    assert lineage.watching() == Watching(AT, None, "tables")
    lineage.mark_swept(AT + 5, AT)
    assert lineage.watching() == Watching(AT, AT + 5, "tables")
    lineage.mark_swept(AT + 6, AT)
    assert lineage.watching() == Watching(AT, AT + 6, "tables")
    lineage.watch_from(AT + 7)
    assert lineage.watching() == Watching(AT + 7)
    lineage.mark_swept(AT + 9, AT)
    assert lineage.watching() == Watching(AT + 7)
    lineage.watch_from(AT + 3, "others")
    assert lineage.watching() == Watching(AT + 3, None, "others")


def test_it_is_known_when_memory_was_said_to_begin(lineage: Lineage) -> None:
    """A loss is noticed after it: that is not the time from which on all is heard."""

    def noted_at() -> Micros:
        watching = lineage.watching()
        assert watching is not None
        return watching.noted_at

    before = now_micros()
    lineage.watch_from(AT)
    noted = noted_at()
    assert before <= noted <= now_micros()
    lineage.mark_swept(AT + 5, AT)
    assert noted_at() == noted
    lineage.watch_from(AT + 1)
    assert noted_at() > noted


def test_the_halves_of_a_sweep_are_marked_apart(lineage: Lineage) -> None:
    lineage.watch_from(AT, "tables")
    lineage.mark_listed(AT + 5, AT - 1)
    assert lineage.watching() == Watching(AT, None, "tables")
    lineage.mark_listed(AT + 5, AT)
    assert lineage.watching() == Watching(AT, None, "tables", AT + 5)
    lineage.mark_swept(AT + 6, AT)
    assert lineage.watching() == Watching(AT, AT + 6, "tables", AT + 5)
    lineage.watch_from(AT + 7)
    assert lineage.watching() == Watching(AT + 7)


def test_nobody_watches_until_it_is_said_again(lineage: Lineage) -> None:
    lineage.watch_from(AT, "tables")
    lineage.mark_swept(AT + 5, AT)
    lineage.stop_watching()
    assert lineage.watching() is None
    lineage.mark_swept(AT + 9, AT)
    assert lineage.watching() is None
    lineage.watch_from(AT + 20, "tables")
    assert lineage.watching() == Watching(AT + 20, None, "tables")


def test_nobody_watches_before_the_first_start() -> None:
    assert MemoryLineage().watching() is None

"""The shares of the workers as one: a slot of a projection is settled once a batch."""

from __future__ import annotations

import pickle
from dataclasses import replace

from reconcilers.model import Kind, Slot, Suspect
from streaming.pipeline.worker import BatchLook, each_once, read_looks
from tests.builders.rows import LONG_AGO, MAILBOX, MESSAGE_ID, NOW, OTHER_ID, SLOT
from tests.builders.slots import uid_of

ONE = Suspect(SLOT, frozenset({MESSAGE_ID}), None, "messages", NOW)
OTHER = Suspect(
    SLOT,
    frozenset({OTHER_ID}),
    Kind.EXTRA_ROW,
    "messages",
    LONG_AGO,
    looked_again=True,
    suspected=Kind.EXTRA_ROW,
)
BOTH = replace(OTHER, sources=frozenset({MESSAGE_ID, OTHER_ID}))


def test_two_suspects_of_one_slot_are_one_with_all_that_either_knows() -> None:
    assert each_once([ONE, OTHER]) == [BOTH]
    assert each_once([OTHER, ONE]) == [BOTH]


def test_an_unknown_age_does_not_hide_a_known_one() -> None:
    (merged,) = each_once([replace(ONE, oldest=None), OTHER])
    assert merged.oldest == LONG_AGO


def test_why_one_of_them_could_not_be_read_is_kept() -> None:
    one = Suspect(SLOT, frozenset(), None, "messages")
    bad = replace(one, unreadable="too many tombstones")
    assert each_once([one, bad]) == each_once([bad, one]) == [bad]


def test_suspects_of_different_projections_are_kept_apart() -> None:
    index = replace(ONE, projection="deleted_uids")
    assert each_once([ONE, index]) == [ONE, index]


def test_suspects_of_different_slots_are_kept_apart() -> None:
    next_to_it = replace(ONE, slot=Slot(MAILBOX, uid_of(SLOT) + 1))
    assert each_once([ONE, next_to_it]) == [ONE, next_to_it]


def test_what_two_workers_found_at_one_slot_is_settled_once() -> None:
    shares = [BatchLook([ONE], examined=3), BatchLook([OTHER], examined=4)]
    whole = read_looks(pickle.dumps(share) for share in shares)
    assert whole.suspects == [BOTH]
    assert whole.examined == 7

"""Changes of mailboxes in arrays say the same as a dictionary would."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from uuid import UUID, uuid1

import numpy as np
import pytest

from streaming.counters import mailbox_changes
from streaming.counters.mailbox_changes import MailboxChanges, NumberedChanges

ENDS_IN_ZEROS = UUID(bytes=bytes(range(1, 9)) + bytes(8))


def some(seed: int) -> Counter[UUID]:
    rng = random.Random(seed)
    return Counter({uuid1(rng.randrange(2**48)): rng.randrange(1, 5) for _ in range(50)})


def test_shares_without_a_change_add_up_to_none() -> None:
    """As those of two workers that were given events of other tables only."""
    whole = MailboxChanges()
    for _ in range(2):
        whole.update(pickle.loads(pickle.dumps(MailboxChanges())))
    assert len(whole) == 0
    assert dict(pickle.loads(pickle.dumps(whole))) == {}
    assert len(NumberedChanges.of(whole).numbers) == 0
    assert NumberedChanges.of(whole).and_of(NumberedChanges.of(whole)).among([ENDS_IN_ZEROS]) == {}


def test_it_adds_up_like_a_counter() -> None:
    shared = some(0)
    changes, expected = MailboxChanges(), Counter[UUID]()
    for each in (some(1), shared, Counter({ENDS_IN_ZEROS: 7}), some(2), shared, Counter[UUID]()):
        changes.update(each)
        expected.update(each)
    travelled = pickle.loads(pickle.dumps(changes))
    for same in (changes, travelled):
        assert same == expected
        assert len(same) == len(expected)
        assert same[ENDS_IN_ZEROS] == 7
        assert UUID(int=5) not in same
    both = MailboxChanges.of(expected)
    both.update(travelled)
    assert both == expected + expected


def test_without_changes_it_is_empty() -> None:
    empty = pickle.loads(pickle.dumps(MailboxChanges()))
    assert empty == {}
    numbered = NumberedChanges.of(empty)
    assert numbered.among([ENDS_IN_ZEROS]) == {}
    assert numbered.and_of(NumberedChanges.of({ENDS_IN_ZEROS: 2})).among([ENDS_IN_ZEROS]) == {
        ENDS_IN_ZEROS: 2
    }


def test_by_number_it_knows_the_changes_of_some_mailboxes() -> None:
    first, second = some(1), some(2)
    both = NumberedChanges.of(first).and_of(NumberedChanges.of(first + second))
    expected = first + first + second
    assert both.among([*expected, ENDS_IN_ZEROS]) == expected
    assert both.among([]) == {}


def test_a_shared_number_only_adds_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """More changes in flight make a counter wait; fewer would make a right one wrong."""
    changes = some(1)
    zeros = np.zeros_like(mailbox_changes.FACTORS)
    monkeypatch.setattr(mailbox_changes, "FACTORS", zeros)
    found = NumberedChanges.of(changes).among(list(changes))
    assert found == dict.fromkeys(changes, changes.total())

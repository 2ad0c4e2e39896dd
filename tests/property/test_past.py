"""On an installation with a past: no write of a user is lost, no mail removed that nobody deleted.

Seeded runs over `past`. Further down rules are broken on purpose, which must be noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from reconcilers.rows.finding import State
from reconcilers.words.model import Kind
from tests.property.mail import FAMILY
from tests.property.past import Past
from tests.property.seeded import assert_met, played

Property = Callable[[int], Past]


def with_old_mail(seed: int) -> Past:
    """Damage from before the stream; capture that stops and comes back."""
    return Past(seed).play().converges()


def with_a_truth_restored(seed: int) -> Past:
    """Besides that the truth is set back to a snapshot."""
    return Past(seed, restores=True).play().converges()


def unless_memory_ends(seed: int) -> Past:
    """Nobody notices that capture had stopped."""
    return Past(seed, ends_memory=False).play()


def met_by(holds: Property, seeds: Iterable[int]) -> Counter[object]:
    met: Counter[object] = Counter()
    for past in played(holds, seeds):
        met.update(planned.kind for planned in past.run.kept.planned)
        met.update(finding.kind for finding in past.run.kept.journal.open_findings(FAMILY))
        met.update(state for _, state in past.run.kept.ended)
    return met


EXPECTED_TO_BE_MET = (
    Kind.MISSING_ROW,
    Kind.DIFFERING_CELLS,
    Kind.EXTRA_ROW,
    Kind.AMBIGUOUS_RANGE_DELETE,
    State.VERIFIED,
)


def test_messages_beside_a_past() -> None:
    assert_met(met_by(with_old_mail, range(300)), dict.fromkeys(EXPECTED_TO_BE_MET, 10))


def test_messages_where_the_truth_was_restored() -> None:
    met_by(with_a_truth_restored, range(300))


@pytest.mark.long(part="past")
@pytest.mark.parametrize("holds", [with_old_mail, with_a_truth_restored])
def test_messages_beside_a_past_in_many_more_runs(holds: Property) -> None:
    met_by(holds, range(1_000_000, 1_004_000))


def test_memory_that_does_not_end_with_capture_is_noticed() -> None:
    with pytest.raises(AssertionError, match="evidence"):
        met_by(unless_memory_ends, range(300))

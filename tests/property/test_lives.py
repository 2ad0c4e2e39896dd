"""No row is removed that its user kept, in random lives: see `lives`.

Nor is one removed whose content went with that of another known row: `content_lost`. The seeds of
`BROKE` removed such a row before the rules were as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from reconcilers.rows import evidence
from reconcilers.words.model import Kind
from tests.property.lives import Life
from tests.property.mail import FAMILY
from tests.property.seeded import assert_met, played

BROKE = (82, 125, 146, 154, 155, 166, 192, 203, 303, 309, 335, 377, 466, 577, 619, 843, 968, 10009)


def a_life(seed: int) -> Life:
    life = Life(seed)
    life.play(60)
    return life


def lived(seeds: Iterable[int]) -> Counter[object]:
    met: Counter[object] = Counter()
    for life in played(a_life, seeds):
        met.update(planned.kind for planned in life.run.kept.planned)
        met.update(each.kind for each in life.run.kept.journal.open_findings(FAMILY))
        met["accepted"] += sum(each.accepted for each in life.run.kept.planned)
        met["undone"] += life.undone
    return met


def test_lives_remove_no_row_that_its_user_kept_and_meet_everything() -> None:
    assert_met(lived(range(300)), dict.fromkeys(EXPECTED_TO_BE_MET, 10))


EXPECTED_TO_BE_MET = (
    Kind.MISSING_ROW,
    Kind.DIFFERING_CELLS,
    Kind.EXTRA_ROW,
    Kind.AMBIGUOUS_RANGE_DELETE,
    Kind.CONTENT_LOST,
    "accepted",
    "undone",
)


@pytest.mark.parametrize("seed", BROKE)
def test_a_life_that_lost_a_row(seed: int) -> None:
    lived([seed])


@pytest.mark.long(part="past")
def test_many_more_lives_remove_no_row_that_its_user_kept() -> None:
    lived(range(1_000_000, 1_003_000))


# --- the rules, broken on purpose ----------------------------------------------------------------


def test_lives_in_which_other_rows_are_of_the_past_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each rule is broken by itself in `test_whose_delete`."""
    monkeypatch.setattr(evidence, "_ended_at", lambda *_: -(2**63))
    with pytest.raises(AssertionError, match=r"its user kept it|one delete took"):
        lived(range(300))

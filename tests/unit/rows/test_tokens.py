"""Ranges of tokens: every token is in one of them, and in the same half of it."""

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.words.tokens import FIRST, LAST, TokenRange, token_ranges

TOKENS = st.integers(FIRST + 1, LAST)


def holds(tokens: TokenRange, token: int) -> bool:
    return tokens.after < token <= tokens.until


@given(st.integers(1, 3_000), TOKENS)
def test_every_token_is_in_one_range(count: int, token: int) -> None:
    ranges = token_ranges(count)
    assert len(ranges) == count
    assert sum(holds(each, token) for each in ranges) == 1


@given(TOKENS)
def test_halving_leads_to_a_single_token(token: int) -> None:
    some = TokenRange()
    for _ in range(70):
        (some,) = [each for each in some.halves() if holds(each, token)]
    assert some == TokenRange(token - 1, token)
    assert some.halves() == (some,)

"""Ranges of tokens: every token is in one of them, and in the same half of it."""

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.words.tokens import FIRST, LAST, TokenRange, range_of, tokens_of

TOKENS = st.integers(FIRST + 1, LAST)


def holds(tokens: TokenRange, token: int) -> bool:
    return tokens.after < token <= tokens.until


@given(st.integers(1, 3_000), TOKENS)
def test_every_token_is_in_one_range(count: int, token: int) -> None:
    ranges = [tokens_of(range(number, number + 1), count) for number in range(count)]
    assert [holds(each, token) for each in ranges].index(True) == range_of(token, count)
    assert sum(holds(each, token) for each in ranges) == 1
    assert [each.until for each in ranges[:-1]] == [each.after for each in ranges[1:]]


@given(st.integers(1, 600), st.data())
def test_adjacent_ranges_are_one(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    until = data.draw(st.integers(first + 1, count))
    ends = tokens_of(range(first, first + 1), count), tokens_of(range(until - 1, until), count)
    assert tokens_of(range(first, until), count) == TokenRange(ends[0].after, ends[1].until)
    assert tokens_of(range(count), count) == TokenRange(FIRST, LAST)


@given(TOKENS)
def test_halving_leads_to_a_single_token(token: int) -> None:
    some = TokenRange()
    for _ in range(70):
        (some,) = [each for each in some.halves() if holds(each, token)]
    assert some == TokenRange(token - 1, token)
    assert some.halves() == (some,)

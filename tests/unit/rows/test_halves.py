"""What fails for one key is that key's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reconcilers.rows.halves import MOST_UNREADABLE, in_halves
from reconcilers.words.errors import MalformedContent, Overloaded, ReadFailed, Refused, Unreachable


class Server:
    """Reads numbers, but for some of them."""

    def __init__(self, *bad: int, error: type[Exception] = ReadFailed) -> None:
        self.bad, self.error = set(bad), error
        self.reads: list[list[int]] = []

    def read(self, numbers: Sequence[int]) -> list[int]:
        self.reads.append(list(numbers))
        if found := self.bad.intersection(numbers):
            raise self.error(f"not {min(found)}")
        return list(numbers)


def nothing() -> None:
    """It can be read at all."""


def broken(error: Exception) -> Callable[[], None]:
    def raises() -> None:
        raise error

    return raises


@pytest.mark.parametrize("error", [ReadFailed, Refused])
@pytest.mark.parametrize(
    ("count", "bad"),
    [(0, []), (1, []), (1, [0]), (2, [1]), (7, [3]), (8, [0, 7]), (9, list(range(9))), (100, [41])],
)
def test_those_that_fail_are_named_and_all_others_are_read_once_in_order(
    count: int, bad: list[int], error: type[Exception]
) -> None:
    server = Server(*bad, error=error)
    found = in_halves(range(count), server.read, nothing)
    assert [each for some in found.answers for each in some] == [
        each for each in range(count) if each not in bad
    ]
    assert found.unreadable == tuple((each, f"not {each}") for each in bad)


def test_what_can_be_read_is_read_at_once() -> None:
    server = Server()
    in_halves(range(1000), server.read, broken(AssertionError("nobody asks")))
    assert server.reads == [list(range(1000))]


def test_one_that_fails_among_many_costs_few_reads() -> None:
    server = Server(700)
    in_halves(range(1024), server.read, nothing)
    assert len(server.reads) == 21


@pytest.mark.parametrize("count", [1, 2, 50])
def test_where_not_even_nothing_can_be_read_it_is_no_key(count: int) -> None:
    server = Server(*range(count))
    with pytest.raises(ReadFailed, match="the table"):
        in_halves(range(count), server.read, broken(ReadFailed("the table")))
    assert len(server.reads) == 1


@pytest.mark.parametrize("count", [1, 2, 7, 8])
def test_whether_nothing_can_be_read_is_asked_once(count: int) -> None:
    asked: list[str] = []
    found = in_halves(range(count), Server(*range(count)).read, lambda: asked.append("nothing"))
    assert len(found.unreadable) == count
    assert asked == ["nothing"]


def test_fifty_are_rows_and_one_more_is_a_node() -> None:
    assert MOST_UNREADABLE == 50
    assert len(in_halves(range(50), Server(*range(1000)).read, nothing).unreadable) == 50
    for count in (51, 1000):
        server = Server(*range(1000))
        with pytest.raises(ReadFailed):
            in_halves(range(count), server.read, nothing)
        assert len(server.reads) < 3 * MOST_UNREADABLE


@pytest.mark.parametrize("error", [Overloaded, Unreachable, KeyError])
def test_other_errors_are_not_a_keys(error: type[Exception]) -> None:
    server = Server(3, error=error)
    with pytest.raises(error):
        in_halves(range(8), server.read, nothing)
    assert len(server.reads) == 1


def test_malformed_content_is_the_fault_of_no_table_however_much_there_is() -> None:
    count = 3 * MOST_UNREADABLE
    server = Server(*range(1, count), error=MalformedContent)
    found = in_halves(range(count), server.read, broken(AssertionError("nobody asks")))
    assert found.answers == ([0],)
    assert [key for key, _ in found.unreadable] == list(range(1, count))

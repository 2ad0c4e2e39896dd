"""What the runs came to: medians with their spread, ratios within a repetition. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tests.bench.counter_rows.book import Verdict
from tests.bench.counter_rows.race import Speed

Cell = tuple[str, int, str]
"""Where something was measured: the shape's name, how many writers, the way of counting."""
HEADER = (
    "writers",
    "way",
    "changes/s",
    "ratio",
    "p50 ms",
    "p99 ms",
    "Cassandra µs",
    "ratio of µs",
    "client µs",
    "table reads",
    "table writes",
    "paxos reads",
    "paxos writes",
)
READ_HEADER = ("way", "one read, ms", "Cassandra µs a read")


@dataclass(frozen=True)
class Spread:
    """The median of some repetitions, the least and the most."""

    middle: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Raises StatisticsError where there are none."""
        ranked = sorted(values)
        return cls(median(ranked), ranked[0], ranked[-1])

    def told(self, digits: int = 0) -> str:
        """The median with the least and the most behind it."""
        numbers = (f"{each:,.{digits}f}" for each in (self.middle, self.least, self.most))
        return "{} ({}–{})".format(*numbers)


def by_cell(speeds: Iterable[Speed]) -> dict[Cell, list[Speed]]:
    """The repetitions of each cell, in the order in which cells came first."""
    found: defaultdict[Cell, list[Speed]] = defaultdict(list)
    for each in speeds:
        found[each.shape, each.writers, each.name].append(each)
    return dict(found)


def ratios(
    cells: Mapping[Cell, Sequence[Speed]], cell: Cell, to: str, value: Callable[[Speed], float]
) -> Spread:
    """A cell against another way of counting in the same place, repetition by repetition."""
    shape, writers, _ = cell
    base = {each.repetition: value(each) for each in cells[shape, writers, to]}
    return Spread.of(value(each) / base[each.repetition] for each in cells[cell])


def table_rows(speeds: Iterable[Speed], shape: str, to: str) -> list[list[object]]:
    """A row for each cell of a shape, by number of writers; ratios are to this way of counting."""
    cells = by_cell(speeds)
    order = list(dict.fromkeys(name for _, _, name in cells))
    mine = [cell for cell in cells if cell[0] == shape]
    mine.sort(key=lambda cell: (cell[1], order.index(cell[2])))
    return [_row(cells, cell, to) for cell in mine]


def _row(cells: Mapping[Cell, Sequence[Speed]], cell: Cell, to: str) -> list[object]:
    runs = cells[cell]

    def spread(value: Callable[[Speed], float]) -> Spread:
        return Spread.of(map(value, runs))

    def done(what: str) -> str:
        return f"{spread(lambda run: run.operations[what]).middle:.2f}"

    return [
        cell[1],
        cell[2],
        spread(lambda run: run.rate).told(),
        ratios(cells, cell, to, lambda run: run.rate).told(2),
        spread(lambda run: run.p50_ms).told(1),
        spread(lambda run: run.p99_ms).told(1),
        spread(lambda run: run.cpu_us).told(),
        ratios(cells, cell, to, lambda run: run.cpu_us).told(2),
        f"{spread(lambda run: run.client_us).middle:,.0f}",
        *map(done, ("table reads", "table writes", "paxos reads", "paxos writes")),
    ]


def read_rows(speeds: Iterable[Speed], shape: str, writers: int) -> list[list[object]]:
    """What one read of a mailbox's numbers costs, by way of counting."""
    return [
        [
            name,
            Spread.of(run.read_ms for run in runs).told(2),
            Spread.of(run.read_us for run in runs).told(),
        ]
        for (of, number, name), runs in by_cell(speeds).items()
        if (of, number) == (shape, writers)
    ]


@dataclass(frozen=True)
class Harm:
    """What one way of counting made of one kind of disturbance, in one repetition.

    ``planted`` is how often it was disturbed; ``truth_lost`` are acknowledged changes that the
    truth itself had lost afterwards.
    """

    name: str
    disturbance: str
    repetition: int
    planted: int
    verdict: Verdict
    truth_lost: int = 0


def harm_rows(harms: Sequence[Harm], disturbances: Sequence[str]) -> list[list[object]]:
    """A row for each way of counting: lost and doubled, by disturbance, all repetitions together.

    Behind each number the least and the most of a repetition.
    """
    names = list(dict.fromkeys(each.name for each in harms))
    return [
        [
            name,
            *(
                _harm([h for h in harms if (h.name, h.disturbance) == (name, each)])
                for each in disturbances
            ),
        ]
        for name in names
    ]


def _harm(harms: Sequence[Harm]) -> str:
    if not harms:
        return "–"
    lost = _told("lost", [each.verdict.lost for each in harms])
    doubled = _told("doubled", [each.verdict.doubled for each in harms])
    return f"{lost}, {doubled}"


def _told(word: str, numbers: Sequence[int]) -> str:
    if not any(numbers):
        return f"0 {word}"
    return f"**{sum(numbers)}** {word} ({min(numbers)}–{max(numbers)})"

"""The pictures of docs/counters-or-rows.md."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import matplotlib
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.counter_rows.race import Speed
from tests.bench.counter_rows.summary import Harm, Spread, by_cell

matplotlib.use("agg")
VALUES: tuple[tuple[str, str, Callable[[Speed], float]], ...] = (
    ("changes a second", "linear", lambda run: run.rate),
    ("p99 of a change, ms", "log", lambda run: run.p99_ms),
    ("Cassandra's CPU, µs a change", "linear", lambda run: run.cpu_us),
)
"""What the columns of the first picture show, and on which scale."""
Bars = dict[str, list[Spread]]
"""By way of counting, a bar for each number of writers."""


def bars(speeds: Iterable[Speed], shape: str, value: Callable[[Speed], float]) -> Bars:
    """What one part of the picture shows: the spread of a value, fewest writers first."""
    cells = by_cell(speeds)
    found: Bars = {}
    for of, _, name in sorted(cells, key=lambda cell: cell[1]):
        if of == shape:
            found.setdefault(name, [])
    for (of, _, name), runs in sorted(cells.items(), key=lambda each: each[0][1]):
        if of == shape:
            found[name].append(Spread.of(map(value, runs)))
    return found


def draw_speeds(speeds: Sequence[Speed], path: Path) -> None:
    """A row for each shape, a column for each of `VALUES`."""
    shapes = list(dict.fromkeys(each.shape for each in speeds))
    writers = sorted({each.writers for each in speeds})
    figure, places = pyplot.subplots(
        len(shapes), len(VALUES), figsize=(14, 4 * len(shapes)), squeeze=False, layout="constrained"
    )
    for row, shape in zip(places, shapes, strict=True):
        for axes, (label, scale, value) in zip(row, VALUES, strict=True):
            _draw_bars(axes, bars(speeds, shape, value), writers)
            axes.set_title(shape)
            axes.set_ylabel(label)
            axes.set_yscale(scale)
    figure.legend(*places[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=6)
    _save(figure, path)


def _draw_bars(axes: Axes, shown: Bars, writers: Sequence[int]) -> None:
    width = 0.8 / max(1, len(shown))
    for number, (name, spreads) in enumerate(shown.items()):
        lefts = [place - 0.4 + (number + 0.5) * width for place in range(len(spreads))]
        middles = [each.middle for each in spreads]
        errors = [
            [each.middle - each.least for each in spreads],
            [each.most - each.middle for each in spreads],
        ]
        axes.bar(lefts, middles, width, yerr=errors, label=name, error_kw={"linewidth": 0.8})
    axes.set_xticks(range(len(writers)), list(map(str, writers)))
    axes.set_xlabel("writers")


def wrong_changes(harms: Sequence[Harm], disturbance: str) -> dict[str, tuple[int, int]]:
    """By way of counting, how many changes a disturbance has lost, and doubled, in all."""
    found = {}
    for name in dict.fromkeys(each.name for each in harms):
        mine = [h.verdict for h in harms if (h.name, h.disturbance) == (name, disturbance)]
        found[name] = (sum(each.lost for each in mine), sum(each.doubled for each in mine))
    return found


def planted_of(harms: Sequence[Harm], disturbance: str) -> int:
    """How often a way of counting was disturbed so: the most of any of them."""
    by_name: Counter[str] = Counter()
    for each in harms:
        by_name[each.name] += each.planted if each.disturbance == disturbance else 0
    return max(by_name.values(), default=0)


def draw_harms(harms: Sequence[Harm], path: Path) -> None:
    """A part for each disturbance: of each way of counting what it lost, and what it doubled."""
    disturbances = list(dict.fromkeys(each.disturbance for each in harms))
    size = (2.6 * len(disturbances) + 2, 3.5)
    figure, places = pyplot.subplots(
        1, len(disturbances), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for axes, disturbance in zip(places[0], disturbances, strict=True):
        shown = wrong_changes(harms, disturbance)
        names = list(shown)
        lost, doubled = [[shown[name][part] for name in names] for part in (0, 1)]
        axes.barh(names, lost, label="lost", color="tab:red")
        axes.barh(names, doubled, left=lost, label="doubled", color="tab:orange")
        planted = planted_of(harms, disturbance)
        axes.set_title(f"{disturbance} ({planted})", fontsize="medium")
        axes.set_xlabel("changes")
        axes.set_xlim(0, max(1, planted))
    places[0][0].invert_yaxis()
    figure.legend(*places[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=80)
    pyplot.close(figure)

"""The sampler's results in the metrics of a stream: shares by system and age, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import Metric

from reconcilers.rows.nines import KnownShare, percent
from reconcilers.rows.sample import SampleResult

NAME = "reconciler_sampled_looks"


@dataclass(frozen=True, slots=True)
class Nines:
    """The looks at sampled changes of one system at one age (s), since the stream started.

    ``share`` of those that were looked at was consistent, None if none was. It is from ``low`` to
    ``high`` with 95 % confidence, whatever the looks that are ``missing`` would have found.
    """

    system: str
    age: int
    consistent: int
    inconsistent: int
    missing: int
    share: float | None
    low: float
    high: float


def nines_in(metrics: Iterable[Metric]) -> tuple[Nines, ...]:
    """The results in these metrics, by age and system; those without any look are left out."""
    found: dict[tuple[int, str], dict[str, int]] = {}
    for sample in (each for metric in metrics if metric.name == NAME for each in metric.samples):
        of = int(sample.labels["age"]), sample.labels["system"]
        found.setdefault(of, {})[sample.labels["outcome"]] = int(sample.value)
    return tuple(_nines(*of, found[of]) for of in sorted(found) if any(found[of].values()))


def _nines(age: int, system: str, numbers: dict[str, int]) -> Nines:
    outcomes = SampleResult.CONSISTENT, SampleResult.INCONSISTENT, SampleResult.NOT_LOOKED_AT
    known = KnownShare(*(numbers.get(each, 0) for each in outcomes))
    bounds = known.interval()
    told = known.good, known.bad, known.missing
    return Nines(system, age, *told, known.of_looked_at, bounds.low, bounds.high)


def as_lines(found: Sequence[Nines]) -> Iterator[str]:
    """One line for each system and age."""
    for each in found:
        size = each.consistent + each.inconsistent
        total = size + each.missing
        share = "unknown" if each.share is None else percent(each.share, size)
        bounds = f"{percent(each.low, total)} to {percent(each.high, total)}"
        missed = f", {each.missing:,} not looked at" if each.missing else ""
        yield (
            f"consistent after {each.age} s, {each.system}: {share} of {size:,} sampled changes"
            f" (with 95 % confidence {bounds}){missed}"
        )

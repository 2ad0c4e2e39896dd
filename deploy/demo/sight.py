"""What the reconciler's metrics say at one moment, as an operator's Prometheus sees them."""

import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from deploy.demo.pace import Pace
from deploy.mailserver.counters import COUNTER_TABLES

KindAt = tuple[str, str]
"""A projection and a kind of difference."""
FindingAndState = tuple[str, str, str]
FAMILY = "message"
"""Whose rows are counted, and by whose batches time is told, with those of `OTHER_FAMILIES`."""
OTHER_FAMILIES = ("rights", "right_lists", "attachment_reference")
"""Each has batches of its own, which come more rarely."""

REPORTED = "reported"
REPAIRED = "intended"
"""The state of a finding whose repair was written and has not been looked at again."""
VERIFIED = "verified"
BATCHES = 5
"""A key is read in one batch, comes out two later, and perhaps goes round once more."""
ENDED = (VERIFIED, "superseded", "healed")


@dataclass(frozen=True, slots=True)
class Sight:
    """Findings counted by projection, kind and state, and the lag. Times are seconds.

    `findings` counts how often a finding came to a state, `standing` how many are in it now.
    `lag` is in records, by topic. Times are since the epoch, 0 before the first: `last_batch`, of
    the family whose last one is oldest, and `frontier`, before which all messages that were written
    have been looked at. `batch_duration` is the mean.
    """

    findings: Mapping[FindingAndState, int] = field(default_factory=dict)
    standing: Mapping[FindingAndState, int] = field(default_factory=dict)
    lag: Mapping[str, int] = field(default_factory=dict)
    breakers: tuple[str, ...] = ()
    capture_delay: float = 0.0
    batch_duration: float = 0.0
    examined: int = 0
    last_batch: float = 0.0
    frontier: float = 0.0
    losses: int = 0

    def kinds(self) -> list[KindAt]:
        """Every projection and kind that was ever found."""
        told = (*self.findings, *self.standing)
        return sorted({(projection, kind) for projection, kind, _ in told})

    def found(self, finding: KindAt) -> int:
        """How many such findings there were: those that ended and those that stand."""
        ended = sum(self.findings.get((*finding, state), 0) for state in ENDED)
        return ended + self.open(finding)

    def came_to(self, finding: KindAt, state: str) -> int:
        """How often such a finding came to this state."""
        return self.findings.get((*finding, state), 0)

    def open(self, finding: KindAt) -> int:
        """How many such findings stand."""
        return sum(n for (*what, _), n in self.standing.items() if tuple(what) == finding)

    def reported(self) -> dict[str, int]:
        """The findings that stand for a person to see, by class."""
        reported: Counter[str] = Counter()
        for (_, kind, state), number in sorted(self.standing.items()):
            if number and state == REPORTED:
                reported[kind] += number
        return dict(reported)

    def in_work(self) -> int:
        """The findings of rows that stand and are not just reported."""
        return sum(n for (*_, state), n in rows_of(self.standing).items() if state != REPORTED)

    def records_behind(self) -> int:
        """Records not read yet, over all topics."""
        return sum(self.lag.values())


def rows_of(counts: Mapping[FindingAndState, int]) -> dict[FindingAndState, int]:
    """The counts of row findings, without those of counters."""
    return {what: n for what, n in counts.items() if what[0] not in COUNTER_TABLES}


def sight_of(text: str) -> Sight:
    """From the text of a metrics endpoint; what it does not have is 0."""
    findings, standing = Counter[FindingAndState](), Counter[FindingAndState]()
    lag = Counter[str]()
    single: defaultdict[str, float] = defaultdict(float)
    breakers, delays, batches = list[str](), [0.0], list[float]()
    for sample in _samples(text):
        labels, value = sample.labels, sample.value
        match sample.name.removeprefix("reconciler_"):
            case "findings_total":
                findings[labels["projection"], labels["kind"], labels["state"]] += int(value)
            case "open_findings":
                standing[labels["projection"], labels["kind"], labels["state"]] += int(value)
            case "kafka_lag_records":
                lag[labels["topic"]] += int(value)
            case "breaker_open":
                breakers += [labels["breaker"]] if value else []
            case "losses_total":
                single["losses"] += value
            case "capture_delay_seconds":
                delays += [value]
            case "last_batch_timestamp_seconds" if labels["family"] in (FAMILY, *OTHER_FAMILIES):
                batches.append(value)
            case name if labels.get("family", FAMILY) == FAMILY:
                single[name] = value
    return Sight(
        findings=findings,
        standing=standing,
        lag=lag,
        breakers=tuple(breakers),
        capture_delay=max(delays),
        batch_duration=_mean(single, "batch_duration_seconds"),
        examined=int(single["keys_examined_total"]),
        last_batch=min(batches, default=0.0),
        frontier=single["frontier_timestamp_seconds"],
        losses=int(single["losses"]),
    )


def _samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from (each for each in family.samples if each.name.startswith("reconciler_"))


def _mean(values: Mapping[str, float], histogram: str) -> float:
    """The mean of all that a histogram has observed; 0 before the first."""
    number = values.get(f"{histogram}_count", 0.0)
    return values[f"{histogram}_sum"] / number if number else 0.0


def look(port: int) -> Sight | None:
    """What the endpoint at this port of 127.0.0.1 says now; None while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return sight_of(answer.read().decode("utf-8"))
    except (urllib.error.URLError, OSError):
        return None


@dataclass(slots=True)
class Quiet:
    """Knows when nothing is left to happen to rows; counters are counted again and again.

    That is: no finding in work, and nothing new for `lasting_s` seconds, by the times of the
    stream's own batches, and for `BATCHES` of them, however long each takes. By then the frontier
    has passed the first of them: whatever was written before has been looked at.
    """

    lasting_s: float
    _last: tuple[object, ...] | None = None
    _batches: list[float] = field(default_factory=list)

    def reached(self, sight: Sight) -> bool:
        """Tell it what is seen now; whether it has been quiet for long enough."""
        seen = (rows_of(sight.findings), rows_of(sight.standing))
        if self.unrest(sight) is not None or seen != self._last:
            self._last, self._batches = seen, [sight.last_batch]
            return False
        if sight.last_batch != self._batches[-1]:
            self._batches.append(sight.last_batch)
        lasted = self._batches[-1] - self._batches[0]
        passed = sight.frontier > self._batches[0]
        return passed and lasted >= self.lasting_s and len(self._batches) > BATCHES

    def unrest(self, sight: Sight) -> str | None:
        """What is still to be done, None when nothing is."""
        return f"{sight.in_work()} findings are in work" if sight.in_work() else None

    def waits_for(self, sight: Sight) -> str:
        """What has to come before it is quiet, in words."""
        if self.unrest(sight) is not None:
            return f"{self.unrest(sight)}, waiting until they are verified"
        if not self._batches or sight.frontier <= self._batches[0]:
            return "waiting until all that was written has been looked at"
        return f"waiting until nothing new was found for {self.lasting_s:.0f} s"


def slow_readings(sight: Sight, pace: Pace, now: float) -> list[str]:
    """What is too slow at ``now`` (seconds since the epoch) for this pace to be kept, in words."""
    readings = (
        ("batches took {:.0f} s", sight.batch_duration, pace.delay),
        ("a change was captured after {:.0f} s", sight.capture_delay, pace.delay),
        ("the last batch ended {:.0f} s ago", now - sight.last_batch, pace.looked_at),
        (
            "all that was written has been looked at only up to {:.0f} s ago",
            now - sight.frontier,
            2 * pace.looked_at,
        ),
    )
    return [
        f"{what.format(seconds)} (at most {most:.0f} s are expected)"
        for what, seconds, most in readings
        if seconds > most
    ]

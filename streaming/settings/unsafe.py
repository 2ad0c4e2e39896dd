"""Settings under which a stream must not write: refused at its start, before anything is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from reconcilers.words.errors import WrongSettings
from streaming.settings.model import Settings
from streaming.settings.work import Mode


@dataclass(frozen=True, slots=True)
class Guarded:
    """The bounds of a setting, both included, within which its guard works, and why."""

    setting: str
    why: str
    least: float = 0
    most: float = inf
    unit: str = ""

    @property
    def allowed(self) -> str:
        """The bounds in words, with the unit."""
        if not self.least:
            return f"{self.most:.15g}{self.unit} or less"
        if self.most == inf:
            return f"{self.least:.15g}{self.unit} or more"
        return f"{self.least:.15g} to {self.most:.15g}{self.unit}"

    def value(self, settings: Settings) -> float:
        """The value in these settings."""
        section, name = self.setting.split(".")
        return float(getattr(getattr(settings, section), name))

    def holds(self, settings: Settings) -> bool:
        """Whether the value lies within the bounds."""
        return self.least <= self.value(settings) <= self.most


TEN = "ten times the default; a fault that writes as much must open the breaker"
MOST = "if so many of the rows differ, a fault of the reconciler is more likely"
OLD = "a node that is back still receives hints and answers with old counters"
PERSON = "a person must see an error that is larger"
GUARDED = (
    Guarded("stream.delay", "James retries a write for up to 31 s", least=35, unit=" s"),
    Guarded("tally.looks", "one look cannot tell an error from a write in flight", least=2),
    Guarded("tally.max_update_lag", "James writes counters later", least=1, unit=" s"),
    Guarded(
        "tally.max_quota_lag",
        "a backlog of James's event bus is longer, and would look like an error of every quota",
        least=60,
        unit=" s",
    ),
    Guarded("tally.after_outage", OLD, least=60, unit=" s"),
    Guarded("tally.correction_max_messages", PERSON, most=100_000),
    Guarded("tally.correction_max_octets", PERSON, most=10**10),
    Guarded("tally.corrections_per_minute", TEN, most=600),
    Guarded("tally.correction_share", MOST, most=0.5),
    Guarded("tally.share_min_looks", "no share applies to fewer looks", most=10_000),
    Guarded("repair.attempts", "a row that is changed back each time must be stuck", most=10),
    Guarded(
        "repair.empty_truth_min_rows",
        "a mailbox that has lost fewer rows of its truth loses them in the listing too",
        most=100,
    ),
    Guarded("repair.suspects_per_minute", TEN, most=10_000),
    Guarded("repair.suspect_share", MOST, most=0.5),
    Guarded("repair.removals_per_minute", TEN, most=1_000),
    Guarded("repair.removal_share", MOST, most=0.1),
    Guarded("repair.share_min_keys", "no share applies to fewer keys", most=10_000),
    Guarded("repair.writes_per_minute", "nothing else bounds a backlog's repairs", most=20_000),
    Guarded(
        "canary.usual_delay",
        "removals go on until events, deletes among them, are twice as late",
        most=300,
        unit=" s",
    ),
    Guarded(
        "canary.lost_after",
        "earlier, a restart of an agent counts as a loss and nothing waits for its events; later,"
        " a loss stays unknown",
        least=300,
        most=3_600,
        unit=" s",
    ),
    Guarded(
        "canary.longest_pause",
        "cdc_raw can overflow in a longer time, and nothing shows it",
        most=3_600,
        unit=" s",
    ),
)
"""In repair mode. Those of ``tally`` apply if any tally is corrected."""


def refuse_unsafe(settings: Settings, mode: Mode) -> None:
    """Raise `WrongSettings` for settings that contradict each other.

    In repair mode also for dangerous ones, unless ``repair.allow_unsafe_settings`` is set.
    """
    wrong = list(contradictions(settings))
    if mode is Mode.REPAIR and not settings.repair.allow_unsafe_settings:
        meant = "(repair.allow_unsafe_settings = true, if you mean it)"
        wrong += [f"not in repair mode: {each} {meant}" for each in dangers(settings)]
    if wrong:
        raise WrongSettings(*wrong)


def contradictions(settings: Settings) -> Iterator[str]:
    """Settings that no installation can mean: equal names that must be different."""
    cassandra = settings.cassandra
    others = {
        "cassandra.keyspace, James's own": cassandra.keyspace,
        "canary.keyspace": settings.canary.keyspace,
    }
    for name, keyspace in others.items():
        if keyspace == cassandra.own_keyspace:
            yield f"setting cassandra.own_keyspace is that of {name}: {keyspace}"
    if settings.canary.keyspace == cassandra.keyspace:
        yield f"setting canary.keyspace is that of James: {cassandra.keyspace}"
    topics: dict[str, str] = {}
    names = ("topic_prefix", "suspects_topic", "observe_suspects_topic", "dead_letters_topic")
    for name in names:
        topic = getattr(settings.kafka, name)
        if topic is not None and topic in topics:
            yield f"settings kafka.{topics[topic]} and kafka.{name} name the same topic: {topic}"
        topics[topic] = name


def dangers(settings: Settings) -> Iterator[str]:
    """Settings that disable a guard, each with the reason."""
    for each in GUARDED:
        unused = each.setting.startswith("tally.") and not settings.tally.projections
        if not unused and not each.holds(settings):
            value = f"{each.value(settings):.15g}"
            yield f"{each.setting} is {value}, not {each.allowed}: {each.why}"
    timeout = settings.cassandra.request_timeout
    if timeout > settings.stream.delay:
        yield (
            f"cassandra.request_timeout is {timeout:g} s, longer than stream.delay: a repair may"
            " arrive after the look that is to verify it"
        )

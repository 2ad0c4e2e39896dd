"""The result of a check of ``reconcile doctor``, and what checks read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from checkpoints.codec import Json
from reconcilers.declared.family import Family, Schema
from streaming.commands.wiring.kept_tallies import Chosen
from streaming.settings import Settings
from streaming.tables import Cluster
from streaming.topics import Watcher


class Level(StrEnum):
    """The severity; only a problem makes ``doctor`` exit with 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was found and, unless it is fine, what to do.

    ``--fix`` prints or runs ``cql`` (as an admin) and creates ``topics``. ``own_keyspace`` names
    what our keyspace lacks: ``--fix`` then runs the steps of its schema, which may copy rows.
    """

    level: Level
    what: str
    advice: str = ""
    cql: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    own_keyspace: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The line as it is printed."""
        advice = f" — {self.advice}" if self.advice else ""
        return f"{self.level:<8} {self.what}{advice}"


COLUMNS = ("level", "what", "advice", "cql", "topics")


def row(check: Check) -> Json:
    """The check as an object, by `COLUMNS`."""
    return {
        "level": str(check.level),
        "what": check.what,
        "advice": check.advice,
        "cql": list(check.cql),
        "topics": list(check.topics),
    }


@dataclass(frozen=True, slots=True)
class CassandraContext:
    """What the checks of one run read. ``schema`` is that of James's keyspace.

    ``chosen`` are the tallies that have two tables.
    """

    settings: Settings
    families: tuple[Family, ...]
    cluster: Cluster
    schema: Schema = field(default_factory=dict)
    chosen: tuple[Chosen, ...] = ()

    @property
    def keyspace(self) -> str:
        """James's keyspace."""
        return self.settings.cassandra.keyspace

    @property
    def watched(self) -> tuple[str, ...]:
        """The tables whose changes wake a key, each once."""
        return tuple(dict.fromkeys(table for each in self.families for table in each.wakes_on))


@dataclass(frozen=True, slots=True)
class KafkaContext:
    """What the checks of Kafka read."""

    settings: Settings
    families: tuple[Family, ...]
    watcher: Watcher


def fine(what: str) -> Check:
    """A check with nothing to do."""
    return Check(Level.OK, what)


def warning(what: str, advice: str, **fix: tuple[str, ...]) -> Check:
    """A check of something that works, but could be safer."""
    return Check(Level.WARNING, what, advice, **fix)


def problem(what: str, advice: str, **fix: tuple[str, ...]) -> Check:
    """A check of something that does not work, or that breaks a promise."""
    return Check(Level.PROBLEM, what, advice, **fix)

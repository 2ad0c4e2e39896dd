"""What can go wrong, as a tree: the branch says who has to act, and with which code a command ends.

::

    ReconcilerError           70  a bug, where it reaches the command line
    ├── Retryable              4  the same call may succeed later: back off, count no attempt
    │   ├── Unreachable           no host answered, or the answer did not come in time
    │   └── Overloaded            the server refused for now (overload, bootstrapping, no quorum)
    │       └── ReadFailed        … or failed this very read: others may do (`rows.halves`)
    ├── Refused                3  the server will refuse this again until a person acts
    ├── Deferred              70  a correction has to wait: the message says for what
    │   └── Soon                  … and only for a moment: the next look may do
    ├── Unfinished            70  a count goes on with the next turn, where it is now
    ├── NotGuarded            70  a write that could override a user's was asked for, never sent
    ├── EndedItself            5  only a new process can go on: its supervisor starts it
    │   └── SparkDied             the JVM is gone
    └── Misconfigured          2  settings, arguments or tables are wrong: one clear line
        ├── OtherSchema        3  another version of the product has made our own keyspace
        ├── EventsLost         3  retention has passed over changes that were not examined
        └── AlreadyRunning     3  another live stream holds the lease

Design after kopf's split of temporary and permanent errors.
"""

from __future__ import annotations

from typing import ClassVar

from reconcilers.words.exit_codes import ExitCode
from reconcilers.words.waiting import Wait, Waiting


class ReconcilerError(Exception):
    """Base of all errors that this product raises on purpose."""

    exit_code: ClassVar[ExitCode] = ExitCode.DEFECT
    """Of a command that this error ends."""


class Retryable(ReconcilerError):
    """The surroundings failed, not the request: it may be tried again unchanged."""

    exit_code: ClassVar[ExitCode] = ExitCode.UNREACHABLE


class Unreachable(Retryable):
    """No host answered, or no answer came in time; a write may or may not be applied."""


class Overloaded(Retryable):
    """The server is alive and refused for now."""


class ReadFailed(Overloaded):
    """The server is alive and failed this read: too many tombstones, an undecodable cell."""


class Refused(ReconcilerError):
    """The server refuses the statement for good: permission, missing table, wrong type."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class Deferred(ReconcilerError):
    """A correction has to wait: for a message to be repaired, a person, a node."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(waiting)
        self.waiting = waiting


class Soon(Deferred):
    """A correction has to wait for a moment only."""

    def __init__(self, why: str) -> None:
        super().__init__(Waiting(Wait.CHANGES, why))


class Unfinished(ReconcilerError):
    """So much was counted in one turn; the next one goes on from there."""


class NotGuarded(ReconcilerError):
    """A write without its guard, or one that names a truth table, was about to be built."""


class Misconfigured(ReconcilerError):
    """Settings or surroundings are wrong; the message says what to change."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class EventsLost(Misconfigured):
    """Records that were not read are gone: past their retention, or with their topic or cluster.

    The message says which.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class OtherSchema(Misconfigured):
    """Our own keyspace was made by a version whose steps this product does not have."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class EndedItself(ReconcilerError):
    """This process cannot go on; a new one can, after what is settled."""

    exit_code: ClassVar[ExitCode] = ExitCode.START_AGAIN


class SparkDied(EndedItself):
    """Spark's JVM is gone; a new process goes on after what is settled."""


class AlreadyRunning(Misconfigured):
    """Another live stream in repair mode holds the lease of this keyspace."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED

"""The tree of errors. The branch says who has to act, and gives the exit code of a command.

::

    ReconcilerError           70  a bug, if it reaches the command line
    ├── Retryable              4  the same call may succeed later: back off, count no attempt
    │   ├── Unreachable           no host answered, or the answer did not come in time
    │   │   └── Rejected       3  it rejects a connection, login or right: a person may have to act
    │   └── Overloaded            the server refused for now (overload, bootstrapping, no quorum)
    │       └── ReadFailed        it failed this read; other reads may succeed (`rows.halves`)
    │           └── MalformedContent  the row was read, and what it stores cannot be understood
    ├── Refused                3  the server refuses the statement until a person acts
    ├── Deferred              70  a correction has to wait; the message says for what
    │   └── Soon                  it has to wait for the next look only
    ├── Unfinished            70  a count continues in the next turn
    ├── NotGuarded            70  a write that could override a user's was built; it is not sent
    ├── EndedItself            5  only a new process can continue; its supervisor starts it
    │   └── SparkDied             the JVM is gone
    └── Misconfigured          2  settings, arguments or tables are wrong
        ├── WrongSettings         each setting that is wrong, with its place
        ├── OtherSchema        3  another version of the product created our keyspace
        ├── EventsLost         3  changes expired in Kafka before they were examined
        ├── NotOffline         3  a fix that needs all services offline is not safe now
        └── AlreadyRunning     3  another live stream holds the lease

The split of temporary and permanent errors follows kopf.
"""

from __future__ import annotations

from typing import ClassVar

from reconcilers.words.exit_codes import ExitCode
from reconcilers.words.waiting import Wait, Waiting


class ReconcilerError(Exception):
    """Base of all errors that this product raises on purpose."""

    exit_code: ClassVar[ExitCode] = ExitCode.DEFECT
    """The exit code of a command that this error ends."""


class Retryable(ReconcilerError):
    """The environment failed, not the request: the request may be repeated unchanged."""

    exit_code: ClassVar[ExitCode] = ExitCode.UNREACHABLE


class Unreachable(Retryable):
    """No host answered, or no answer came in time. A write may have been applied or not."""


class Rejected(Unreachable):
    """A server rejects our certificate, login or right, or TLS is on at one side only.

    A stream that runs tries again, because a certificate or a password may be being replaced. At a
    start a person has to act.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class Overloaded(Retryable):
    """The server is alive and refuses for now."""


class ReadFailed(Overloaded):
    """The server is alive and failed this read: too many tombstones, or an undecodable cell."""


class MalformedContent(ReadFailed):
    """The server read the rows of a source, and their content cannot be understood."""


class Refused(ReconcilerError):
    """The server refuses the statement permanently: permission, missing table, or wrong type."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class Deferred(ReconcilerError):
    """A correction of a counter has to wait: for the repair of a message, a person, or a node."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(waiting)
        self.waiting = waiting


class Soon(Deferred):
    """A correction of a counter has to wait until the next look."""

    def __init__(self, why: str) -> None:
        super().__init__(Waiting(Wait.CHANGES, why))


class Unfinished(ReconcilerError):
    """One turn has counted as much as it may. The next turn continues the count."""


class NotGuarded(ReconcilerError):
    """A write that has no guard, or that names a truth table, was about to be built."""


class Misconfigured(ReconcilerError):
    """The settings or the environment are wrong. The message says what to change."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class WrongSettings(Misconfigured):
    """Settings that are not possible. ``problems`` has a line for each."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class EventsLost(Misconfigured):
    """Records that were not read are gone: expired, or deleted with their topic or cluster."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class NotOffline(Misconfigured):
    """A fix that needs all services offline may not be sent: users may be writing."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class OtherSchema(Misconfigured):
    """Our keyspace was created by a version whose schema steps this version does not have."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class EndedItself(ReconcilerError):
    """This process cannot continue. A new process can continue from the settled offsets."""

    exit_code: ClassVar[ExitCode] = ExitCode.START_AGAIN


class SparkDied(EndedItself):
    """Spark's JVM is gone. A new process continues from the settled offsets."""


class AlreadyRunning(Misconfigured):
    """Another live stream in repair mode holds the lease of this keyspace."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED

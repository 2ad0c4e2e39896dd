"""What can go wrong, as a tree: the branch says who has to act.

::

    ReconcilerError
    ├── Retryable            the same call may succeed later: back off, never count an attempt
    │   ├── Unreachable      no host answered, or the answer did not come in time
    │   └── Overloaded       the server refused for now (overload, bootstrapping, no quorum)
    │       └── ReadFailed   … or failed this very read: others may do (`reconcilers.halves`)
    ├── Refused              the server will refuse this again until a person acts
    ├── Deferred             a correction has to wait: the message says for what
    │   └── Soon             … and only for a moment: the next look may do
    ├── Unfinished           a count goes on with the next turn, where it is now
    ├── SparkDied            the JVM is gone: only a new process can go on
    ├── NotGuarded           a write that could override a user's was asked for: a bug, never sent
    └── Misconfigured        settings or surroundings are wrong: one clear line, exit code 2
        ├── NewerSchema              a newer product has upgraded our own keyspace
        ├── EventsLost               retention has passed over changes that were not examined
        └── AlreadyRunning           another live stream holds the lease

Design after kopf's split of temporary and permanent errors.
"""


class ReconcilerError(Exception):
    """Base of all errors that this product raises on purpose."""


class Retryable(ReconcilerError):
    """The surroundings failed, not the request: it may be tried again unchanged."""


class Unreachable(Retryable):
    """No host answered, or no answer came in time; a write may or may not be applied."""


class Overloaded(Retryable):
    """The server is alive and refused for now."""


class ReadFailed(Overloaded):
    """The server is alive and failed this read: too many tombstones, an undecodable cell."""


class Refused(ReconcilerError):
    """The server refuses the statement for good: permission, missing table, wrong type."""


class Deferred(ReconcilerError):
    """A correction has to wait: for a message to be repaired, a person, a node."""


class Soon(Deferred):
    """A correction has to wait for a moment only."""


class Unfinished(ReconcilerError):
    """So much was counted in one turn; the next one goes on from there."""


class NotGuarded(ReconcilerError):
    """A write without its guard, or one that names a truth table, was about to be built."""


class Misconfigured(ReconcilerError):
    """Settings or surroundings are wrong; the message says what to change."""


class EventsLost(Misconfigured):
    """Records that were not read are gone: past their retention, or with their topic or cluster.

    The message says which.
    """


class NewerSchema(Misconfigured):
    """Our own keyspace has a step that this product does not know: a newer one upgraded it."""


class SparkDied(ReconcilerError):
    """Spark's JVM is gone; a new process goes on after what is settled."""


class AlreadyRunning(Misconfigured):
    """Another live stream in repair mode holds the lease of this keyspace."""

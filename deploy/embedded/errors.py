"""What can go wrong with the embedded stack. Each message is one line that says what to do.

EmbeddedError
├── MissingToolError  Java 17 or Maven is not there
├── FetchError        Maven could not copy a set of jars
├── StartError        a server ended, or was not ready in time
└── MismatchError     the data directory belongs to a stack with other options, or to none
"""


class EmbeddedError(Exception):
    """Any failure of the embedded stack; its text is fit to be shown to a person."""


class MissingToolError(EmbeddedError):
    """A program that the stack needs is not installed."""


class FetchError(EmbeddedError):
    """A set of jars could not be copied."""


class StartError(EmbeddedError):
    """A server ended during its start, or was not ready in time."""


class MismatchError(EmbeddedError):
    """The data directory cannot be used with the options given."""

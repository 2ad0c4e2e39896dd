"""What differs between installations of James: two settings, and its age."""

from dataclasses import dataclass

from deploy.mailserver.attachments import Shape


@dataclass(frozen=True, slots=True)
class Variant:
    """Two settings of James, both on by default, and the shape of its attachments.

    ``strong_reads``: `message.read.strong.consistency`, reads at SERIAL instead of QUORUM.
    ``strong_writes``: `message.write.strong.consistency.unsafe`, lightweight transactions instead
    of plain updates.
    """

    strong_reads: bool = True
    strong_writes: bool = True
    attachments: Shape = Shape.SINCE_3_7


USUAL = Variant()

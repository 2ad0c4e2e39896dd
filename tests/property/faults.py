"""What may befall a process of the product: it dies, or a write of its is not answered."""

from __future__ import annotations

from enum import Enum


class CrashError(BaseException):
    """The process dies here."""


class Outcome(Enum):
    """What becomes of a write that is sent."""

    APPLIED = "applied"
    APPLIED_BUT_TIMED_OUT = "applied, but timed out"
    TIMED_OUT_THEN_LATE = "timed out, applied later"
    LOST = "timed out, never applied"

"""Settings of sweeps."""

from __future__ import annotations

from pydantic import Field, PositiveInt, field_validator

from reconcilers.sweep.hours import Hours
from streaming.settings.section import Section


class SweepSettings(Section):
    """Full comparisons: `reconcile sweep`."""

    ranges: int | None = Field(
        None,
        gt=0,
        description="token ranges of each table; a sweep resumes after whole ranges; else 512, or"
        " more if Cassandra estimates that one would be more than ten seconds of work",
    )
    rows_per_second: PositiveInt = Field(
        5_000,
        description="most rows that are read a second, in total, fewer while Cassandra answers"
        " slowly",
    )
    when_needed: bool = Field(
        default=True,
        description="the stream starts a sweep after its first start, and after each loss",
    )
    every_days: int = Field(0, ge=0, description="days until the next such sweep; 0: never")
    between: str | None = Field(
        None,
        description="hours of local time in which sweeps read, such as 01:00-05:00; outside they"
        " pause; without it at any time",
    )

    @property
    def hours(self) -> Hours | None:
        """The hours of ``between``."""
        return None if self.between is None else Hours.of(self.between)

    @field_validator("between")
    @classmethod
    def _are_hours(cls, between: str | None) -> str | None:
        if between is not None:
            Hours.of(between)
        return between

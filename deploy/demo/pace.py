"""How fast the demo's reconciler is set to run: as fast as this machine started the servers."""

from dataclasses import dataclass

FASTEST_DELAY_S = 5.0
STARTS_A_DELAY = 1 / 4
"""On two quiet cores the servers start in about 20 s, and a delay of 5 s leaves room."""
SLOWEST_DELAY_S = 45.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The windows of the demo, in seconds.

    ``delay`` is D: nothing is judged before. It is also how late a counter may be written and a
    change captured: on a machine that is busy with other work both take longer. ``window`` is W: a
    key comes out D to D + 1.5 W after it was read. For rights W is five times as long, at most D.
    """

    delay: float = FASTEST_DELAY_S
    window: float = 1.0

    @property
    def settled(self) -> float:
        """Until a key has surely come out of the window."""
        return self.delay + self.window

    @property
    def looked_at(self) -> float:
        """Until a row that was just written has surely been looked at."""
        return self.settled + 6.0

    @property
    def quiet(self) -> float:
        """A young row is looked at twice, each time D + W later; then nothing more can come."""
        return 2 * self.settled + 3.0


def pace_of(start_seconds: float) -> Pace:
    """The pace of a machine that took so long to start the servers."""
    delay = start_seconds * STARTS_A_DELAY
    return Pace(delay=round(min(max(delay, FASTEST_DELAY_S), SLOWEST_DELAY_S), 1))

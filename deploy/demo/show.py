"""The live view: one block that is drawn again on a terminal, plain lines elsewhere."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from deploy.demo.sight import REPAIRED, VERIFIED, Sight

PLAIN_EVERY_S = 5.0
CLEAR_BELOW = "\x1b[J"
UP = "\x1b[{}A"


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to show: what the users did, and what the reconciler sees (if it answers)."""

    doing: str
    statements: int
    faults: int
    sight: Sight


def block(scene: Scene) -> list[str]:
    """The scene as a few lines with a table of findings by projection and kind."""
    sight = scene.sight
    lines = [
        scene.doing,
        f"  mail server   {scene.statements} statements to projections, "
        f"{scene.faults} faults and oddities",
        f"  reconciler    {sight.examined} rows examined, {behind(sight)}",
        f"  {'finding':<38}{'found':>8}{'repaired':>10}{'verified':>10}{'open':>7}",
    ]
    for finding in sight.kinds():
        repaired, verified = (sight.came_to(finding, state) for state in (REPAIRED, VERIFIED))
        lines.append(
            f"    {' '.join(finding):<36}{sight.found(finding):>8}{repaired:>10}{verified:>10}"
            f"{sight.open(finding):>7}"
        )
    lines.append(f"  reported, left as they are: {reported(sight)}")
    return lines + [f"  breaker {name} is OPEN: {name} pause" for name in sight.breakers]


def line(scene: Scene) -> str:
    """The scene as one line."""
    sight = scene.sight
    kinds = ", ".join(
        f"{' '.join(finding)} {sight.found(finding)}/{sight.came_to(finding, REPAIRED)}"
        f"/{sight.came_to(finding, VERIFIED)}"
        for finding in sight.kinds()
        if sight.came_to(finding, REPAIRED)
    )
    opened = "".join(f"; breaker {name} is OPEN" for name in sight.breakers)
    return (
        f"{scene.doing}; {scene.faults} faults; found/repaired/verified: {kinds or 'nothing yet'};"
        f" reported: {reported(sight)}; {behind(sight)}{opened}"
    )


def behind(sight: Sight) -> str:
    """The lag in words."""
    return (
        f"{sight.records_behind()} records behind, capture delay {sight.capture_delay:.1f} s, "
        f"batch {sight.batch_duration:.1f} s"
    )


def reported(sight: Sight) -> str:
    """The standing reported classes in words."""
    return ", ".join(f"{kind} {n}" for kind, n in sight.reported().items()) or "none"


class Screen(Protocol):
    """Where the demo tells what happens."""

    def say(self, text: str) -> None:
        """A line that stays."""

    def show(self, scene: Scene) -> None:
        """The scene as it is now."""


def _monotonic() -> float:
    return time.monotonic()


@dataclass(slots=True)
class Stopwatch:
    """Minutes and seconds since the demo began."""

    now: Callable[[], float] = _monotonic
    began: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin now."""
        self.began = self.now()

    def seconds(self) -> float:
        """Since it began."""
        return self.now() - self.began

    def __str__(self) -> str:
        minutes, seconds = divmod(int(self.seconds()), 60)
        return f"{minutes}:{seconds:02}"


@dataclass(slots=True)
class Plain:
    """For files and pipes: a line at a time, the scene every few seconds."""

    stream: TextIO
    clock: Stopwatch = field(default_factory=Stopwatch)
    _shown_at: float = float("-inf")

    def say(self, text: str) -> None:
        """Print it."""
        print(f"[{self.clock}] {text}", file=self.stream, flush=True)

    def show(self, scene: Scene) -> None:
        """Print the scene as one line, unless one was printed just now."""
        if self.clock.seconds() - self._shown_at >= PLAIN_EVERY_S:
            self._shown_at = self.clock.seconds()
            self.say(line(scene))


@dataclass(slots=True)
class Terminal:
    """For people: the scene is drawn over the one before."""

    stream: TextIO
    clock: Stopwatch = field(default_factory=Stopwatch)
    _drawn: int = 0

    def say(self, text: str) -> None:
        """Print it above the scene, which the next `show` draws again."""
        self._draw([f"[{self.clock}] {text}"])
        self._drawn = 0

    def show(self, scene: Scene) -> None:
        """Draw the scene in place of the last one."""
        first, *others = block(scene)
        size = shutil.get_terminal_size()
        lines = [text[: size.columns - 1] for text in (f"[{self.clock}] {first}", *others)]
        lines = lines[: size.lines - 1]
        self._draw(lines)
        self._drawn = len(lines)

    def _draw(self, lines: Sequence[str]) -> None:
        up = UP.format(self._drawn) if self._drawn else ""
        self.stream.write("\r" + up + CLEAR_BELOW + "\n".join(lines) + "\n")
        self.stream.flush()


def screen_for(stream: TextIO) -> Screen:
    """The right one for this stream."""
    return Terminal(stream) if stream.isatty() else Plain(stream)

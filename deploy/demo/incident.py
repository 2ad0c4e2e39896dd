"""The last act, an incident: the agent dies, and what was captured meanwhile is lost."""

from dataclasses import dataclass
from pathlib import Path

from cassandra.cluster import Session

from deploy.demo.old_mail import end_segment
from deploy.demo.planter import Planter
from deploy.demo.show import Screen
from deploy.demo.stream import Stream
from deploy.embedded import Stack
from deploy.embedded.wait import until
from deploy.mailserver.ledger import VERIFIED

BOOKMARK = "before-the-incident"
LONGEST_WAIT_S = 1800.0
LOOK_EVERY_S = 0.5
COMPLETE = "COMPLETED"
"""What stands in the index of a segment that is written no more."""


@dataclass(frozen=True, slots=True)
class Incident:
    """What happens, what an operator does, and what is said to them."""

    stack: Stack
    session: Session
    stream: Stream
    screen: Screen

    def run(self, planter: Planter) -> None:
        """To its end. Raises StreamDiedError where a command fails, embedded's StartError."""
        self._tell("bookmark", BOOKMARK)
        before = self._lost()
        self.screen.say("an incident: the agent dies, mail goes on, and its segments are deleted")
        self.stack.kill_agent()
        self._drift(planter)
        end_segment(self.session)
        deleted = delete_finished(self.stack.layout.cassandra / "cdc_raw")
        self.screen.say(f"{deleted} segments are lost; the agent is started again")
        self.stack.start_agent()
        until(
            lambda: self._lost() > before,
            LONGEST_WAIT_S,
            f"the loss is known (see {self.stream.log})",
            LOOK_EVERY_S,
        )
        self.screen.say("the loss is known, by the canaries that were lost with them")
        self._tell("status", only="LOST")
        self._tell("sweep", "--reason", "segments were lost")
        self._tell("replay", "--bookmark", BOOKMARK)

    def _drift(self, planter: Planter) -> None:
        """A row is lost and a flag goes stale, of which no event ever tells."""
        for kind, damage in (
            ("row_lost_unheard", planter.unproject),
            ("stale_flag_unheard", lambda message: planter.set_cells(message, flagseen=True)),
        ):
            message = planter.message()
            damage(message)
            planter.note(kind, message, VERIFIED)

    def _lost(self) -> int:
        sight = self.stream.sight()
        return 0 if sight is None else sight.losses

    def _tell(self, *command: str, only: str = "") -> None:
        self.screen.say(f"`reconcile {' '.join(command)}`")
        for line in self.stream.command(*command):
            if only in line:
                self.screen.say(f"  {line}")


def delete_finished(folder: Path) -> int:
    """Delete the segments that nobody writes any more; how many."""
    finished = [
        each
        for each in folder.glob("*_cdc.idx")
        if COMPLETE in each.read_text(encoding="utf-8", errors="replace")
    ]
    for index in finished:
        index.with_name(index.name.replace("_cdc.idx", ".log")).unlink(missing_ok=True)
        index.unlink()
    return len(finished)

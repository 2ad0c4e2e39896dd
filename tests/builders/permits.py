"""What a worker may write where its own clock stands."""

from reconcilers.limits.gate import Admission
from reconcilers.limits.write_target import WriteTarget
from reconcilers.words.waiting import Waiting
from streaming.steps.pauses import PauseWatch
from streaming.steps.permit import Permit
from tests.fakes.checkpoints.pauses import MemoryPauses

OPEN = Admission()


def nothing_paused(_target: WriteTarget) -> Waiting | None:
    """Nobody has paused anything."""
    return None


def permit(admission: Admission = OPEN) -> Permit:
    """As the driver admits it."""
    return Permit(admission, lambda: None, nothing_paused)


def unpaused() -> PauseWatch:
    """Of a process that nobody has paused."""
    return PauseWatch(MemoryPauses(), lambda: 0)

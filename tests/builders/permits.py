"""What a worker may write where its own clock stands."""

from reconcilers.policy import Admission
from reconcilers.write_target import WriteTarget
from streaming.steps.pauses import PauseWatch
from streaming.steps.permit import Permit
from tests.fakes.checkpoints.pauses import MemoryPauses

OPEN = Admission()


def nothing_paused(_target: WriteTarget) -> str | None:
    """Nobody has paused anything."""
    return None


def permit(admission: Admission = OPEN) -> Permit:
    """As the driver admits it."""
    return Permit(admission, lambda: None, nothing_paused)


def unpaused() -> PauseWatch:
    """Of a process that nobody has paused."""
    return PauseWatch(MemoryPauses(), lambda: 0)

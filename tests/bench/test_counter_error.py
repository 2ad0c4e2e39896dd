"""Counter errors over time under fire: ours, and a task that recomputes and resets as James does.

The same writers, the same share of failing counter updates, mailboxes of each side; full speed,
then little traffic, then rest. Draws docs/counter-error.png.
"""

import threading
import time
import uuid
from itertools import accumulate
from pathlib import Path
from uuid import UUID

import matplotlib
import pytest
from matplotlib import pyplot

from deploy.mailserver.mailserver import MailServer, new_timeuuid
from tests.bench.report import publish, table
from tests.stack.fire import Fire, Writers
from tests.stack.recomputing import Recomputing
from tests.stack.scenes import Scene
from tests.stack.streams import until

pytestmark = pytest.mark.bench

matplotlib.use("agg")
PHASES = (("full speed", 60.0, 0.0), ("little traffic", 180.0, 4.0))
"""Each with its seconds, and the seconds that each of the four writers pauses."""
SHARE = 0.05
RESET_EVERY = 10.0
"""Seconds between two passes of the task."""
ROWS_PER_SECOND = 100
"""Messages that James's task looks at in a second."""
PICTURE = Path("docs/counter-error.png")


class Samples:
    """The error of each side's counters, once a second: stored minus what the writers meant."""

    def __init__(self, scene: Scene, fire: Fire, sides: dict[str, list[UUID]]) -> None:
        self._scene, self._fire, self._sides = scene, fire, sides
        self._began = time.monotonic()
        self.taken: list[dict[str, float]] = []

    def run(self, stop: threading.Event) -> None:
        """Until told to stop."""
        while not stop.wait(1.0):
            self.taken.append(self.take())

    def take(self) -> dict[str, float]:
        """The mean distance of a mailbox's count from the truth, by side, and the time (s)."""
        query = f"SELECT mailboxid, count FROM {self._scene.keyspace}.mailboxcounters"
        stored = {row.mailboxid: row.count or 0 for row in self._scene.session.execute(query)}
        sample = {"seconds": time.monotonic() - self._began}
        for side, mailboxes in self._sides.items():
            errors = [
                abs(stored.get(each, 0) - self._fire.meant[each, "count"]) for each in mailboxes
            ]
            sample[side] = sum(errors) / len(errors)
        return sample


def test_counter_error_over_time(counted_scene: Scene) -> None:
    scene, fire = counted_scene, Fire(share=SHARE)
    server = MailServer(scene.session, scene.keyspace)
    user = f"user-{uuid.uuid4().hex[:8]}"
    ours = [server.create_mailbox(user, f"box-{number}") for number in range(3)]
    theirs = [new_timeuuid() for _ in range(3)]  # unknown to the tables of mailboxes: not ours
    samples = Samples(scene, fire, {"reconciler": ours, "recompute and reset": theirs})
    writers = Writers(scene.session, scene.keyspace, [*ours, *theirs], fire)
    stop = threading.Event()
    recomputing = Recomputing(scene.session, scene.keyspace, theirs, RESET_EVERY, ROWS_PER_SECOND)
    threads = [
        threading.Thread(target=each.run, args=(stop,), daemon=True)
        for each in (recomputing, samples)
    ]
    for each in threads:
        each.start()
    ends = []
    for _name, seconds, pause_s in PHASES:
        with writers.at_work(pause_s):
            time.sleep(seconds)
        ends.append(samples.take())
    fire.share = 0.0
    until("ours are exact", lambda: samples.take()["reconciler"] == 0, 300)
    stop.set()
    for each in threads:
        each.join()
    ends.append(samples.take())
    _publish(samples, ends)


def _publish(samples: Samples, ends: list[dict[str, float]]) -> None:
    names = [f"after {name}" for name, _, _ in PHASES] + ["at rest"]
    publish(
        "Counter error under fire",
        f"{SHARE:.0%} of all counter updates are lost (three of four) or counted twice, at full"
        " speed and with little traffic (a write a second, to six mailboxes). The mean distance"
        " of a mailbox's count from the truth: ours, and mailboxes that a task recomputes and"
        f" resets as James does, {ROWS_PER_SECOND} rows a second, {RESET_EVERY:.0f} s after the"
        " pass before. Ours waits while every look is overtaken by writes, and then only comes"
        " nearer; the task puts in an error of its own whenever somebody writes while it counts."
        " With little traffic the task is nearer than ours, which adds only what is sure; but it"
        " passes here every few seconds, and James's runs when an operator starts it.",
        "![error over time](counter-error.png)",
        table(
            ("", "seconds", "reconciler", "recompute and reset"),
            [
                (name, each["seconds"], each["reconciler"], each["recompute and reset"])
                for name, each in zip(names, ends, strict=True)
            ],
        ),
    )
    draw(samples.taken, PICTURE)


def draw(taken: list[dict[str, float]], path: Path) -> None:
    """The picture."""
    figure, axes = pyplot.subplots(figsize=(9, 4))
    for side in ("reconciler", "recompute and reset"):
        axes.plot([each["seconds"] for each in taken], [each[side] for each in taken], label=side)
    for when in accumulate(seconds for _, seconds, _ in PHASES):
        axes.axvline(when, color="grey", linestyle=":")
    axes.set_xlabel("seconds")
    axes.set_ylabel("mean error of a mailbox's count")
    axes.set_yscale("symlog", linthresh=1)  # linear below one message
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=100)

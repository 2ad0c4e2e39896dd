"""After the last fault: until servers answer and canaries are received, then until all agrees."""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cassandra.cluster import Session
from prometheus_client.samples import Sample

from deploy.embedded import Stack
from deploy.embedded.wait import until
from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.statements import SERVER_TROUBLE
from deploy.nemesis.checker import check
from deploy.nemesis.clocks import CLOCK_FAULTS
from deploy.nemesis.final import read_final
from deploy.nemesis.history import UserWrite
from deploy.nemesis.schedule import InjectedFault
from deploy.nemesis.stream import QUOTA_LAG_S, WINDOW_S, StreamProcess
from deploy.nemesis.tables import RowId
from deploy.nemesis.verdict import Judgement

log = logging.getLogger(__name__)

LOOKS = 3
"""So many observations prove a quota wrong, a sixth of its lag and a delay apart."""
SKEW_US = 100_000
"""All clocks are one, unless one was shifted; a ballot may be a little ahead."""
LOOK_EVERY_S = 10.0
LONGEST_RECOVERY_S = 1200.0
USUAL_DELAY_S = 15.0


@dataclass(frozen=True, slots=True)
class Agreement:
    """The last judgement, and how long (s) after the last fault nothing was wrong; None: never."""

    judgement: Judgement
    after_s: float | None


def await_agreement(
    stack: Stack,
    stream: StreamProcess,
    session: Session,
    history: Sequence[UserWrite],
    injected: Mapping[InjectedFault, int],
    shift_s: int,
) -> Agreement:
    """Judge again and again, until nothing is wrong or the bound has passed.

    The bound begins when all servers answer, what was written up to now is received, and rows that
    wait for a sweep after lost events were swept. If a node was replaced, rows that the stream
    reports and leaves to a person count as such. Clocks that were shifted were by `shift_s`. Raises
    StartError if servers do not answer, or
    the stream ended by itself.
    """
    healed, healed_at = time.monotonic(), time.time()
    until(lambda: not stack.missing() and stack.agent_answers(), LONGEST_RECOVERY_S, "all run", 1)
    began = healed
    while True:
        now = time.monotonic()
        received = is_received(stream.samples(), len(stack.nodes), healed_at, stream.delay_s)
        if not received and now - healed < LONGEST_RECOVERY_S:
            began = now
        reported = stream.left_to_a_person() if injected.get(InjectedFault.REPLACE_NODE) else ()
        judgement = judged(session, stack.keyspace, history, skew_us(injected, shift_s), reported)
        if judgement is not None:
            late_s = now - began
            log.info(
                "%d differences, %.0f s after all was received", len(judgement.violations), late_s
            )
            if not judgement.violations:
                return Agreement(judgement, round(now - healed, 1))
            if late_s > bound_s(judgement, stream.delay_s):
                return Agreement(judgement, None)
        time.sleep(LOOK_EVERY_S)


def is_received(samples: Sequence[Sample], nodes: int, at: float, delay_s: int) -> bool:
    """Whether all that was written up to `at` (s since 1970) has come, of each of so many nodes.

    By the metrics of a stream with this delay D.
    """
    delays = [each.value for each in samples if each.name == "reconciler_capture_delay_seconds"]
    frontier = [each for each in samples if each.name == "reconciler_frontier_timestamp_seconds"]
    due = any(each.value for each in samples if each.name == "reconciler_sweep_due")
    prompt = len(delays) >= nodes and max(delays) < USUAL_DELAY_S + delay_s + WINDOW_S
    return prompt and not due and any(each.value > at for each in frontier)


def skew_us(injected: Mapping[InjectedFault, int], shift_s: int) -> int:
    """How far (µs) a server's clock may have been from ours, by what was injected."""
    shifted = any(injected.get(each) for each in CLOCK_FAULTS)
    return SKEW_US + shifted * shift_s * 1_000_000


def bound_s(judgement: Judgement, delay_s: int) -> float:
    """How long what is wrong may take to be right, by the delay D.

    A quota rests for its lag before it is observed, and again before it is judged (docs/quotas.md).
    What changes in flight hid of its error the next observations prove (docs/counters.md).
    """
    rows_s = 4 * (delay_s + WINDOW_S) + 60
    counters = {each.table for each in COUNTER_TABLES.values()}
    if not {each.table for each in judgement.violations} <= counters:
        return rows_s
    proof_s = QUOTA_LAG_S + LOOKS * (QUOTA_LAG_S / 6 + delay_s + WINDOW_S)
    return rows_s + QUOTA_LAG_S + 2 * proof_s


def judged(
    session: Session,
    keyspace: str,
    history: Sequence[UserWrite],
    skew: int,
    reported: Collection[RowId],
) -> Judgement | None:
    """What the checker says now; None if the tables could not be read at the level ALL."""
    try:
        return check(history, read_final(session, keyspace), skew, reported)
    except SERVER_TROUBLE as error:
        log.warning("the tables could not be read: %r", error)
        return None

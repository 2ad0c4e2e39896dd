"""Counters and quotas under concurrent writers: nothing is corrected without an error, each
correction comes nearer, and when the mail rests everything is exact.
"""

import time
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from checkpoints import codec
from deploy.mailserver.mailserver import MailServer
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.writes import AddToCounter
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Finding
from reconcilers.words.model import Kind
from tests.stack.fire import Fire, Owner, Writers
from tests.stack.scenes import Scene
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="fire")]

FULL_SPEED_S, MODERATE_S = 120.0, 90.0
Sums = tuple[int, int]


class Burning:
    """Two users with two mailboxes each, at work."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.session, self.keyspace = scene, scene.session, scene.keyspace
        self.fire = Fire()
        server = MailServer(self.session, self.keyspace)
        self.users = [f"user-{uuid.uuid4().hex[:8]}" for _ in range(2)]
        self.mailboxes = {
            server.create_mailbox(user, name): user
            for user in self.users
            for name in ("one", "other")
        }
        self.writers = Writers(self.session, self.keyspace, list(self.mailboxes), self.fire)
        self.journal = scene.journal

    def true(self) -> dict[Owner, Sums]:
        """What the counters of each mailbox and quota root should say, by the truth alone."""
        sums: dict[Owner, Sums] = dict.fromkeys(self.mailboxes, (0, 0))
        sums |= dict.fromkeys((f"#private&{user}" for user in self.users), (0, 0))
        for row in self.session.execute(f"SELECT * FROM {self.keyspace}.imapuidtable"):
            if row.mailboxid in self.mailboxes:
                root = f"#private&{self.mailboxes[row.mailboxid]}"
                _add(sums, row.mailboxid, 1, int(not row.flagseen))
                _add(sums, root, 1, row.fullcontentoctets)
        return sums

    def stored(self) -> dict[Owner, Sums]:
        """What they do say."""
        found: dict[Owner, Sums] = {}
        for row in self.session.execute(f"SELECT * FROM {self.keyspace}.mailboxcounters"):
            if row.mailboxid in self.mailboxes:
                found[row.mailboxid] = (row.count or 0, row.unseen or 0)
        for row in self.session.execute(f"SELECT * FROM {self.keyspace}.currentquota"):
            if row.quotaroot.removeprefix("#private&") in self.users:
                found[row.quotaroot] = (row.messagecount or 0, row.storage or 0)
        return found

    def accept_large_corrections(self) -> None:
        """As `reconcile findings --accept` does."""
        for finding in list(self.journal.open_findings(USER_TALLY)):
            if finding.kind is Kind.LARGE_CORRECTION and not finding.accepted:
                self.journal.accept(accepted(finding, time.time_ns() // 1000))

    def corrections(self) -> list[tuple[int, Owner, dict[str, int]]]:
        """Each delta that we sent: when (µs), to whom, what was added."""
        found: dict[tuple[Any, ...], tuple[int, Owner, dict[str, int]]] = {}
        for line in self.journal.log(datetime.now(UTC).date()):
            family = MAILBOX_TALLY if line["family"] == "mailbox_tally" else USER_TALLY
            if line["projection"] not in ("mailbox_counters", "current_quota"):
                continue
            finding: Finding = codec.finding_from_json(line, family)
            for write in finding.writes:
                if isinstance(write, AddToCounter):
                    columns = {write.tally.cells[s].column: d for s, d in write.deltas.items()}
                    place = (write.tally.name, write.key, write.round)
                    found[place] = (finding.tried_at, write.key, columns)
        return sorted(found.values(), key=lambda each: each[0])


def _add(sums: dict[Owner, Sums], owner: Owner, one: int, other: int) -> None:
    sums[owner] = (sums[owner][0] + one, sums[owner][1] + other)


@pytest.fixture(scope="module")
def burning(counted_scene: Scene) -> Burning:
    return Burning(counted_scene)


def looks(burning: Burning, outcome: str) -> float:
    return burning.scene.metric("reconciler_tally_looks_total", outcome=outcome)


def test_without_faults_looks_are_made_and_nothing_is_corrected(burning: Burning) -> None:
    with burning.writers.at_work(pause_s=0.0):
        time.sleep(FULL_SPEED_S)  # the time under fire, not a wait
    until("the counters are right", lambda: burning.stored() == burning.true())
    until("looks were made", lambda: looks(burning, "unsure") + looks(burning, "moved") > 0)
    assert sum(burning.writers.done.values()) > 1_000
    assert not burning.corrections()


def test_with_faults_corrections_are_made_while_moderate_traffic_goes_on(
    burning: Burning,
) -> None:
    burning.fire.share = 0.05
    with burning.writers.at_work(pause_s=0.0):
        time.sleep(FULL_SPEED_S)
    assert burning.fire.burns
    burning.fire.share = 0.0
    before = len(burning.corrections())
    with burning.writers.at_work(pause_s=4.0):
        until(
            "a correction is made meanwhile",
            lambda: len(burning.corrections()) > before,
        )
        time.sleep(MODERATE_S)
    for outcome in ("agrees", "unsure", "wrong", "moved", "behind", "deferred"):
        print(f"looks {outcome:<10} {looks(burning, outcome):6.0f}")


def test_each_correction_came_nearer_to_the_truth(burning: Burning) -> None:
    """By the writers' own book: every fault and every correction, in the order of time."""
    errors: dict[tuple[Owner, str], int] = {}
    events = [(burn.at, burn.owner, burn.added, False) for burn in burning.fire.burns]
    events += [(at, owner, added, True) for at, owner, added in burning.corrections()]
    for _at, owner, added, ours in sorted(events, key=lambda each: each[0]):
        for counter, number in added.items():
            before = errors.get((owner, counter), 0)
            errors[owner, counter] = before + number
            if ours:
                assert abs(before + number) < abs(before), (owner, counter, before, number)
    assert burning.corrections()


def test_when_the_mail_rests_everything_is_exact(burning: Burning) -> None:
    """Once a person has accepted the corrections that are large."""

    def exact() -> bool:
        burning.accept_large_corrections()
        return burning.stored() == burning.true()

    until("the counters are right", exact)

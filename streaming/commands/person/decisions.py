"""Decisions of a person on open findings: retry, accept, release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from checkpoints.journal import Journal
from reconcilers.declared.families import FAMILIES, family_named
from reconcilers.declared.family import Family
from reconcilers.limits.hold import ON_HOLD, Hold
from reconcilers.rows.acceptance import Reason
from reconcilers.rows.decision import ACCEPTABLE, LOOKED_AT_NEXT, OF_MANY_ROWS, accepted, retried
from reconcilers.rows.finding import Finding, State
from reconcilers.sweep.lost_rows import COVERED, reason_at
from reconcilers.words.key import WHOLE_TABLE, named, text_of
from reconcilers.words.model import Kind, Micros, Slot, Wake, look_again
from reconcilers.words.waiting import RULES, Wait
from streaming.commands.arguments.finding_filter import FindingFilter, slots_named
from streaming.commands.person.orders import Orders
from streaming.pipeline.open_finding import finding_wake

Publish = Callable[[Family, Iterable[Wake]], None]
Decide = Callable[[Finding, Micros], Finding]
LOOKED_AT = "looked at again one delay from now"
SWEPT = "handed over to the stream by the next sweep: `reconcile sweep`"


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision: why a finding refuses it (or None), how it changes the finding, and is stored.

    ``store`` returns False if the finding has ended.
    """

    done: str
    refusal: Callable[[Finding], str | None]
    change: Decide
    store: Callable[[Journal, Finding], bool]


def _not_retried(finding: Finding) -> str | None:
    if finding.kind in OF_MANY_ROWS:
        return "it is looked at by sweeps: `reconcile findings --accept`, then `reconcile sweep`"
    if finding.state in {State.STUCK, State.REPORTED} and finding.slot != WHOLE_TABLE:
        return None
    return f"it is {finding.state.value}, not stuck: the stream looks at it automatically"


def _not_accepted(finding: Finding) -> str | None:
    if finding.wait is Wait.HOLD:
        return str(RULES[Wait.HOLD])
    if _is_not_decided(finding):
        return "a sweep decides on these rows once it has read the whole truth: `reconcile sweep`"
    if finding.kind in ACCEPTABLE:
        return None
    if finding.wait is not None:
        return None if RULES[finding.wait].may_be_accepted else str(RULES[finding.wait])
    allowed = ", ".join(sorted(ACCEPTABLE))
    return f"{finding.kind.value} cannot be decided here, only: {allowed}"


def _is_not_decided(finding: Finding) -> bool:
    """Whether the finding stands for rows whose message is unknown."""
    if finding.kind is not Kind.PAST_ROWS:
        return False
    reason = reason_at(family_named(finding.family), finding.slot)
    return reason is not None and not COVERED[reason]


def _store_retried(journal: Journal, finding: Finding) -> bool:
    journal.decide(finding)
    return True


def _store_accepted(journal: Journal, finding: Finding) -> bool:
    return journal.accept(finding)


RETRY = Decision("retried", _not_retried, retried, _store_retried)
ACCEPT = Decision("accepted", _not_accepted, accepted, _store_accepted)


class Listing(NamedTuple):
    """One open finding as a person was shown it, with its times (µs)."""

    family: Family
    projection: str
    slot: Slot
    reason: Reason
    found_at: Micros
    tried_at: Micros

    @classmethod
    def of(cls, family: Family, finding: Finding) -> Listing:
        """The finding as it is now."""
        times = finding.found_at, finding.tried_at
        return cls(family, finding.projection, finding.slot, finding.reason, *times)

    def is_still(self, finding: Finding) -> bool:
        """Whether the finding is the listed one, for the same reason."""
        return (finding.found_at, finding.reason) == (self.found_at, self.reason)


@dataclass(frozen=True, slots=True)
class Desk:
    """Carries decisions out: the journal first, then it publishes the key."""

    journal: Journal
    publish: Publish
    clock: Callable[[], Micros]
    orders: Orders
    families: tuple[Family, ...] = FAMILIES

    def decide(self, decision: Decision, keys: frozenset[str] | None, wanted: FindingFilter) -> int:
        """Decide on these keys, or with None on all findings that match and allow it.

        A key that fits several families means each open finding there. Returns 1 if a named one is
        not open, does not match, or refuses. The findings are listed once: what a person has agreed
        to is decided, and nothing that was found meanwhile.
        """
        listed, missing, refused = list[Listing](), set(keys or ()), 0
        for key, family, finding in self._matching(keys, wanted):
            missing.discard(key)
            why = decision.refusal(finding)
            if why is None:
                listed.append(Listing.of(family, finding))
            elif keys is not None:
                print(f"refused  {text_of(finding.slot)} {finding.kind.value}: {why}")
                refused += 1
        for key in sorted(missing):
            print(f"unknown  {key}: no open finding there matches")
        if keys is None and not self.orders.agree(
            Counter(each.reason.kind.value for each in listed), f"findings will be {decision.done}"
        ):
            return 1
        done = Counter(each for each in map(partial(self._carry_out, decision), listed) if each)
        self._tell(done, decision.done)
        return int(bool(refused or missing or done.total() < len(listed)))

    def _tell(self, done: Counter[str], what: str) -> None:
        """Print the numbers of decided findings, by what happens to them next."""
        if self.orders.dry_run:
            print(f"{done.total()} would be {what}; nothing done")
            return
        for then, number in done.items():
            print(f"{number} {what}; {then}")
        if not done:
            print("nothing done")

    def _matching(
        self, keys: frozenset[str] | None, wanted: FindingFilter
    ) -> Iterator[tuple[str, Family, Finding]]:
        """The findings that match, each with the key that named it."""
        for key, family, finding in self._all() if keys is None else self._named(keys):
            if wanted.takes(family, finding):
                yield key, family, finding

    def _all(self) -> Iterator[tuple[str, Family, Finding]]:
        for family in self.families:
            for finding in self.journal.open_findings(family):
                yield text_of(finding.slot), family, finding

    def _named(self, keys: frozenset[str]) -> Iterator[tuple[str, Family, Finding]]:
        for key in sorted(keys):
            for family, slot in slots_named(self.families, key):
                for name in family.names:
                    for finding in self.journal.recall(family, name, [slot]).values():
                        yield key, family, finding

    def _carry_out(self, decision: Decision, listed: Listing) -> str | None:
        """Decide on a listed finding as it is now; returns what happens to it next.

        Returns None if it has ended, or it has another reason now, or it refuses now. Of many rows,
        those that were counted by the time of the list are accepted.
        """
        family, where = listed.family, f"{text_of(listed.slot)} {listed.reason.kind.value}"
        here = self.journal.recall(family, listed.projection, [listed.slot])
        finding = here.get(listed.slot)
        changed = f"changed  {where}: no longer as it was listed, nothing is decided"
        if finding is None or not listed.is_still(finding) or decision.refusal(finding):
            print(changed)
            return None
        many = finding.kind in OF_MANY_ROWS
        if many:
            finding = replace(finding, tried_at=listed.tried_at)
        then = SWEPT if many else LOOKED_AT
        sentence = finding.told
        if self.orders.dry_run:
            print(f"would be {decision.done}  {where}: {sentence}")
            return then
        decided = decision.change(finding, self.clock())
        told = self.orders.told(decided.sentence, decision.done)
        if not decision.store(self.journal, replace(decided, sentence=told)):
            print(changed)
            return None
        if family.projections and not many:
            self.publish(family, [finding_wake(family, finding)])  # a tally's are read now and then
        print(f"{decision.done:<8} {where}: {sentence}")
        return then

    # --- holds

    def on_hold(self, wanted: FindingFilter) -> Iterator[tuple[Family, Hold]]:
        """The keys on hold that match; a hold has no kind and no state."""
        for family in self.families:
            for hold in self.journal.holds.all(family):
                told = {"state": wanted.state, "kind": wanted.kind, "at": hold.asked_at}
                key = named(family.key, hold.slot.key)
                if wanted.has({**key, **told, "projection": hold.projection}):
                    yield family, hold

    def release(self, keys: frozenset[str] | None, wanted: FindingFilter) -> int:
        """End the holds of these keys, or with None of all that match. Returns as `decide` does."""
        found = [
            (family, hold)
            for family, hold in self.on_hold(wanted)
            if keys is None or text_of(hold.slot) in keys
        ]
        if keys is None and not self.orders.agree(
            Counter(hold.projection for _, hold in found), "keys will be released"
        ):
            return 1
        for family, hold in found:
            self._release(family, hold)
        missing = sorted((keys or frozenset()) - {text_of(hold.slot) for _, hold in found})
        for key in missing:
            print(f"unknown  {key}: it is not on hold")
        self._tell(Counter(LOOKED_AT for _ in found), "released")
        return int(bool(missing))

    def _release(self, family: Family, hold: Hold) -> None:
        """Release one key. The hold ends last, so a release that was killed can be repeated."""
        where = f"{text_of(hold.slot)} {hold.projection}"
        if self.orders.dry_run:
            print(f"would be released  {where}: {hold}")
            return
        standing = self.journal.recall(family, hold.projection, [hold.slot]).get(hold.slot)
        if standing is not None:
            sentence = self.orders.told(standing.sentence, "released")
            released = replace(standing, sentence=sentence, next_look=self.clock())
            if standing.wait is Wait.HOLD:
                released = replace(released, waits=LOOKED_AT_NEXT)
            self.journal.decide(released)
        if family.projections:
            self.publish(family, [self._wake_of(family, hold, standing)])
        self.journal.holds.end(hold, self.orders.end())
        print(f"released {where}: it was {ON_HOLD} {hold.who}: {hold.reason}")

    def _wake_of(self, family: Family, hold: Hold, standing: Finding | None) -> Wake:
        """The key to look at, with the source of its open finding, or of its log.

        What was undone has no open finding, and its row may name no source any more.
        """
        if standing is not None:
            return finding_wake(family, standing)
        log = self.journal.history(family, hold.projection, hold.slot)
        undone = next(log, None)
        if undone is None:
            return look_again(hold.slot, hold.projection)
        return finding_wake(family, replace(undone, oldest=None))

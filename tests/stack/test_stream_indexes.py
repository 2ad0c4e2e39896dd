"""The index tables follow the truth: deleted, unseen and recent UIDs, and the flags in use.

Each case is one message, right on both sides, whose index rows are then wrong in one way. The truth
is touched once more, or changed, so that its event leads to them.
"""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pytest

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.writes import DeleteRow
from reconcilers.rows.finding import Finding
from reconcilers.words.model import Slot
from tests.stack.indexes import KEY_ONLY, Applicable, Index, add_flag, flags_in_use
from tests.stack.pasts import QUIET
from tests.stack.scenes import Place, Scene, cells, now_us
from tests.stack.streams import DELAY, until

pytestmark = pytest.mark.stack

TEN_MINUTES_US = 600_000_000


def index_of(scene: Scene, name: str) -> Index:
    return (Index if name in KEY_ONLY else Applicable)(scene, name)


def write_message(scene: Scene, place: Place, **flags: object) -> None:
    scene.write_both(place, cells(**{**QUIET, **flags}))


def expunge(scene: Scene, place: Place) -> None:
    """From the truth and the list of messages, not from an index."""
    scene.delete_truth(place)
    scene.delete_projection(place)


# --- what users do, the index statement lost. Each tells where the row belongs, and where not ----


Belongs = dict[Place, bool]


def missing(index: Index) -> Belongs:
    """Appended with the flag."""
    place = Place()
    write_message(index.scene, place, **index.belonging)
    return {place: True}


def extra(index: Index) -> Belongs:
    """Appended without the flag, where another message once had its UID."""
    place = Place()
    index.add(place)
    write_message(index.scene, place, **index.strange)
    return {place: False}


def flag_set(index: Index) -> Belongs:
    place = Place()
    write_message(index.scene, place, **index.strange)
    write_message(index.scene, place, **index.belonging)
    return {place: True}


def flag_cleared(index: Index) -> Belongs:
    place = Place()
    write_message(index.scene, place, **index.belonging)
    index.add(place)
    index.clear(place)
    return {place: False}


def expunged(index: Index) -> Belongs:
    place = Place()
    write_message(index.scene, place, **index.belonging)
    index.add(place)
    expunge(index.scene, place)
    return {place: False}


def copied(index: Index) -> Belongs:
    place = Place()
    copy = Place(messageid=place.messageid, uid=3)
    write_message(index.scene, place, **index.belonging)
    index.add(place)
    write_message(index.scene, copy, **index.belonging)
    return {place: True, copy: True}


def moved(index: Index) -> Belongs:
    (source, target) = copied(index)
    expunge(index.scene, source)
    return {source: False, target: True}


def right(index: Index) -> Belongs:
    """As it should be, with and without the flag."""
    place, other = Place(), Place()
    write_message(index.scene, place, **index.belonging)
    index.add(place)
    write_message(index.scene, other, **index.strange)
    return {place: True, other: False}


ConfirmedSuspect = Callable[[Index], Belongs]
CASES: tuple[ConfirmedSuspect, ...] = (
    missing,
    extra,
    flag_set,
    flag_cleared,
    expunged,
    copied,
    moved,
    right,
)
INDEXES = (*KEY_ONLY, "applicable_flags")


@dataclass(frozen=True)
class Expected:
    """Where a row is in the end, and where that is not so yet."""

    there: Belongs
    wrong: frozenset[Place]


@dataclass(frozen=True)
class Planted:
    """All that is to be looked at, by index: so that the delay passes once for all."""

    cases: dict[tuple[str, ConfirmedSuspect], Expected]
    young: dict[str, Place]
    dropped: dict[str, list[Place]]
    deleted: dict[str, Place]
    flagged: Place
    unlisted: Place


@pytest.fixture(scope="module")
def planted(indexed_scene: Scene) -> Planted:
    cases = {(name, case): plant(indexed_scene, name, case) for name in INDEXES for case in CASES}
    young = {name: Place() for name in KEY_ONLY}
    deleted = {name: Place() for name in KEY_ONLY}
    flagged, unlisted = Place(), Place()
    add_flag(indexed_scene, flagged, "old")
    write_message(indexed_scene, flagged, userflags={"new", "other"})
    indexed_scene.write_truth(unlisted, cells(**QUIET, flagdeleted=True))
    dropped = {
        name: [place, replace(place, messageid=uuid.uuid1(), uid=2)]
        for name, place in ((name, Place()) for name in KEY_ONLY)
    }
    for name in KEY_ONLY:
        index = Index(indexed_scene, name)
        index.add(young[name], at=now_us() + TEN_MINUTES_US)
        write_message(indexed_scene, young[name], **index.strange)
        for place in (deleted[name], *dropped[name]):
            write_message(indexed_scene, place, **index.belonging)
            index.add(place)
    indexed_scene.await_remembered([flagged, *deleted.values(), *chain(*dropped.values())])
    write_message(indexed_scene, replace(flagged, uid=2))
    for name in KEY_ONLY:
        index = Index(indexed_scene, name)
        drop_partition(index, dropped[name][0])
        delete_mailbox(index, deleted[name])
    indexed_scene.await_all_examined()
    return Planted(cases, young, dropped, deleted, flagged, unlisted)


def plant(scene: Scene, name: str, case: ConfirmedSuspect) -> Expected:
    index = index_of(scene, name)
    there, now = case(index), index.has
    if isinstance(index, Applicable):  # which never shrinks
        there = {place: belongs or now(place) for place, belongs in there.items()}
    wrong = frozenset(place for place, belongs in there.items() if now(place) != belongs)
    return Expected(there, wrong)


def drop_partition(index: Index, place: Place) -> None:
    """As the mail server does when a mailbox is deleted."""
    table = KEY_ONLY[index.name][0]
    index.scene.execute(f"DELETE FROM $mail.{table} WHERE mailboxid = %s", place.mailboxid)


def delete_mailbox(index: Index, place: Place) -> None:
    """With all that is in it; then a row is written to the index after all."""
    index.scene.delete_truth(place)
    index.scene.execute("DELETE FROM $projection WHERE mailboxid = %s", place.mailboxid)
    drop_partition(index, place)
    index.add(place)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("name", INDEXES)
def test_an_index_follows_the_truth(
    indexed_scene: Scene, planted: Planted, name: str, case: ConfirmedSuspect
) -> None:
    index, wanted = index_of(indexed_scene, name), planted.cases[name, case]
    assert bool(wanted.wrong) is (case is not right) or isinstance(index, Applicable)
    for place, belongs in wanted.there.items():
        until("the index is right", partial(index.says, place, belongs))
        if place in wanted.wrong:
            indexed_scene.await_verified(place.row)
        told = {each["projection"] for each in indexed_scene.findings(place.row)}
        assert told == ({name} if place in wanted.wrong else set())


@pytest.mark.parametrize("name", KEY_ONLY)
def test_what_a_user_writes_within_the_delay_survives(
    indexed_scene: Scene, planted: Planted, name: str
) -> None:
    """Its row and the truth's disagree for a moment: the row's own time is newer than C - D."""
    index, place = Index(indexed_scene, name), planted.young[name]
    journal = indexed_scene.journal

    def tried() -> list[Finding]:
        slot = Slot(*place.row)
        found = journal.recall(MESSAGE, name, [slot]).get(slot)
        return [found] if found is not None and found.writes else []

    until("a removal was tried", tried)
    (finding,) = tried()
    (write,) = finding.writes
    assert isinstance(write, DeleteRow)
    assert write.at == finding.tried_at - DELAY * 1_000_000
    assert index.has(place)


@pytest.mark.parametrize("name", KEY_ONLY)
def test_rows_behind_a_partition_tombstone_come_back(
    indexed_scene: Scene, planted: Planted, name: str
) -> None:
    """The mailbox lives: what it lists is in the index again."""
    for place in planted.dropped[name]:
        until("the row is back", partial(Index(indexed_scene, name).has, place))


@pytest.mark.parametrize("name", KEY_ONLY)
def test_nothing_is_left_of_a_deleted_mailbox(
    indexed_scene: Scene, planted: Planted, name: str
) -> None:
    """Nor of a row that is written to the index after all."""
    index, place = Index(indexed_scene, name), planted.deleted[name]
    until("the late row is gone", lambda: not index.has(place))
    assert indexed_scene.lacks(place.row)


def test_a_flag_in_use_is_added_and_none_is_taken_away(
    indexed_scene: Scene, planted: Planted
) -> None:
    place = planted.flagged
    applicable = partial(flags_in_use, indexed_scene, place)
    until("the flags are applicable", lambda: applicable() == {"old", "new", "other"})
    indexed_scene.await_verified(place.row)
    assert applicable() == {"old", "new", "other"}


def test_a_flag_that_somebody_takes_away_comes_back(indexed_scene: Scene) -> None:
    """No message is touched: the event of the row that collects leads to its mailbox."""
    place, other = Place(), Place()
    for each in (place, replace(other, mailboxid=place.mailboxid, uid=place.uid + 1)):
        write_message(indexed_scene, each, userflags={"kept", "lost"})
    until("the flags are there", lambda: flags_in_use(indexed_scene, place) == {"kept", "lost"})
    less = "UPDATE $mail.applicableflag SET userflags = userflags - %s WHERE mailboxid = %s"
    indexed_scene.execute(less, {"lost"}, place.mailboxid)
    until("it is back", lambda: flags_in_use(indexed_scene, place) == {"kept", "lost"})


def test_what_could_be_taken_away_is_a_report(indexed_scene: Scene, planted: Planted) -> None:
    indexed_scene.await_verified(planted.flagged.row)
    mailbox = str(planted.flagged.mailboxid)

    def told(*only: str) -> dict[str, dict[str, object]]:
        asked = ("findings", "--unused-flags", "--format", "jsonl", *only)
        answer = indexed_scene.succeed(*asked)
        return {each["mailboxid"]: each for each in map(json.loads, answer.stdout.splitlines())}

    report = told()[mailbox]
    assert (report["kind"], report["state"]) == ("unused_flags", "reported")
    assert "no message of the mailbox has old," in str(report["sentence"])
    assert list(told("--mailbox", mailbox)) == [mailbox]


def test_a_missing_message_comes_first_and_its_indexes_after_it(
    indexed_scene: Scene, planted: Planted
) -> None:
    place, index = planted.unlisted, Index(indexed_scene, "deleted_uids")
    until("both are there", lambda: indexed_scene.agrees(place) and index.has(place))

    def told() -> list[str]:
        return [str(each["projection"]) for each in indexed_scene.findings(place.row)]

    until("both are told", lambda: len(set(told())) == 2)
    assert list(dict.fromkeys(told())) == ["messages", "deleted_uids"]

"""Each violation that the checker must see is planted; the smallest change makes it vanish."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.mailserver.mail import Flags
from deploy.mailserver.mailbag import random_content, with_attachments
from deploy.nemesis.checker import check
from deploy.nemesis.history import UserAnswer, UserOutcome, UserWrite
from deploy.nemesis.statement import UserStatement, UserWriteKind
from deploy.nemesis.verdict import Judgement, ViolationName
from tests.unit.nemesis.scene import SKEW_US, NemesisScene

LOST, OVERRIDDEN = ViolationName.LOST, ViolationName.OVERRIDDEN
REMOVED, TRUTH_WRITE = ViolationName.REMOVED, ViolationName.TRUTH_WRITE
DOUBLED, NOT_CONVERGED = ViolationName.DOUBLED, ViolationName.NOT_CONVERGED
SEEN = Flags(frozenset({"seen"}), frozenset({"work"}))


@pytest.fixture
def scene(tmp_path: Path) -> NemesisScene:
    return NemesisScene(tmp_path)


def names(judgement: Judgement) -> list[ViolationName]:
    return [each.name for each in judgement.violations]


def with_outcome(
    writes: list[UserWrite], table: str, kind: UserWriteKind, outcome: UserOutcome
) -> list[UserWrite]:
    """The last such write with another outcome."""
    place = max(
        number
        for number, write in enumerate(writes)
        if (write.statement.table, write.statement.kind) == (table, kind)
    )
    changed = list(writes)
    answer = replace(changed[place].answer, outcome=outcome)
    changed[place] = replace(changed[place], answer=answer)
    return changed


def test_a_run_without_a_product_and_without_faults_is_right(scene: NemesisScene) -> None:
    message = scene.message()
    scene.server.set_flags(message, SEEN)
    other = scene.server.create_mailbox("ana@example.org", "Sent")
    scene.server.expunge(scene.server.copy(message, other))
    assert names(scene.judged()) == []


# --- lost


def test_a_flag_that_fell_back_to_an_older_value_is_lost(scene: NemesisScene) -> None:
    message = scene.message()
    cells = scene.table("messageidtable").cells[message.mailboxid, message.uid]
    before = dict(cells)
    scene.server.set_flags(message, SEEN)
    after = dict(cells)
    cells["flagseen"] = before["flagseen"]
    [violation] = scene.judged().violations
    assert (violation.name, violation.cell) == (LOST, "flagseen")
    assert violation.evidence["users"][-1]["value"] is True
    cells["flagseen"] = after["flagseen"]
    assert names(scene.judged()) == []


def test_a_write_with_an_unknown_outcome_may_be_lost(scene: NemesisScene) -> None:
    message = scene.message()
    cells = scene.table("messageidtable").cells[message.mailboxid, message.uid]
    before = cells["flagseen"]
    scene.server.set_flags(message, SEEN)
    cells["flagseen"] = before
    writes = with_outcome(
        scene.writes(), "messageidtable", UserWriteKind.UPDATE, UserOutcome.UNKNOWN
    )
    judgement = check(writes, scene.final(), SKEW_US)
    assert names(judgement) == [NOT_CONVERGED]


def test_a_deleted_flag_of_the_list_of_flags_is_lost_even_if_unused(scene: NemesisScene) -> None:
    message = scene.message()
    scene.server.set_flags(message, Flags())
    scene.put("applicableflag", (message.mailboxid,), "userflags.work", None)
    assert names(scene.judged()) == [LOST]
    scene.put("applicableflag", (message.mailboxid,), "userflags.work", "work")
    assert names(scene.judged()) == []


def test_a_flag_in_use_that_the_list_of_flags_lost_is_one_violation(scene: NemesisScene) -> None:
    message = scene.message()
    scene.put("applicableflag", (message.mailboxid,), "userflags.work", None)
    assert names(scene.judged()) == [LOST]


def test_a_change_of_a_row_that_was_never_readable_is_lost_with_it(scene: NemesisScene) -> None:
    message = scene.message()
    scene.server.set_flags(message, SEEN)
    scene.delete("messageidtable", (message.mailboxid, message.uid))
    table, insert = "messageidtable", "messageid"
    writes = [
        each
        for each in scene.writes()
        if each.statement.table != table or insert not in each.statement.cells
    ]
    assert names(check(writes, scene.final(), SKEW_US)) == [LOST]


# --- overridden


def test_a_newer_value_that_no_user_wrote_overrides(scene: NemesisScene) -> None:
    message = scene.message()
    slot = (message.mailboxid, message.uid)
    scene.put("messageidtable", slot, "flagseen", True)
    [violation] = scene.judged().violations
    assert (violation.name, violation.cell) == (OVERRIDDEN, "flagseen")
    scene.put("messageidtable", slot, "flagseen", False)
    assert names(scene.judged()) == []


def test_a_row_that_came_back_after_its_delete_overrides_it(scene: NemesisScene) -> None:
    message = scene.message()
    slot = (message.mailboxid, message.uid)
    scene.server.expunge(message)
    scene.put("messageidtable", slot, "messageid", message.messageid)
    assert names(scene.judged()) == [OVERRIDDEN]
    scene.delete("messageidtable", slot)
    assert names(scene.judged()) == []


def test_a_granted_right_that_nobody_gave_overrides(scene: NemesisScene) -> None:
    message = scene.message()
    scene.server.share(message.mailboxid, "ben", "lr")
    scene.put("usermailboxacl", ("ben", message.mailboxid), "rights", "lrs")
    scene.put("aclv2", (message.mailboxid, "ben"), "rights.s", "s")
    assert names(scene.judged()) == [OVERRIDDEN, OVERRIDDEN]
    scene.put("usermailboxacl", ("ben", message.mailboxid), "rights", "lr")
    scene.put("aclv2", (message.mailboxid, "ben"), "rights.s", None)
    assert names(scene.judged()) == []


def test_a_counter_that_moved_by_no_whole_delta_is_overridden(scene: NemesisScene) -> None:
    message = scene.message()
    quota = scene.table("currentquota").counters["#private&ana@example.org",]
    quota["storage"] += 7
    assert names(scene.judged()) == [OVERRIDDEN]
    quota["storage"] -= 7
    assert quota["storage"] == message.content.fullcontentoctets
    assert names(scene.judged()) == []


# --- removed without a delete


@pytest.mark.parametrize("table", ["messageidtable", "firstunseen", "mailboxrecents"])
def test_a_row_that_no_user_deleted_was_removed(scene: NemesisScene, table: str) -> None:
    message = scene.message()
    slot = (message.mailboxid, message.uid)
    scene.delete(table, slot)
    assert REMOVED in names(scene.judged())
    scene.table(table).deletes.clear()
    assert names(scene.judged()) == []


def test_rights_that_no_user_took_away_were_removed(scene: NemesisScene) -> None:
    message = scene.message()
    scene.server.share(message.mailboxid, "ben", "lr")
    scene.delete("aclv2", (message.mailboxid, "ben"))
    assert names(scene.judged()) == [REMOVED]


@pytest.mark.parametrize(("outcome", "name"), [("ok", None), ("unknown", NOT_CONVERGED)])
def test_a_row_that_a_user_perhaps_deleted_was_not_removed(
    scene: NemesisScene, outcome: str, name: ViolationName | None
) -> None:
    message = scene.message()
    scene.server.expunge(message)
    writes = with_outcome(
        scene.writes(), "messageidtable", UserWriteKind.DELETE, UserOutcome(outcome)
    )
    if name is not None:
        scene.table("imapuidtable").deletes.clear()
        writes = [
            write
            for write in writes
            if (write.statement.table, write.statement.kind)
            != ("imapuidtable", UserWriteKind.DELETE)
        ]
    judgement = check(writes, scene.final(), SKEW_US)
    found = {each.name for each in judgement.violations if each.table == "messageidtable"}
    assert found == ({name} if name else set())
    assert judgement.weakened == (name is not None)


# --- truth write


def test_a_changed_cell_of_the_truth_is_a_truth_write(scene: NemesisScene) -> None:
    message = scene.message()
    row = (message.messageid, message.mailboxid, message.uid)
    cells = scene.table("imapuidtable").cells[row]
    before = cells["headercontent"]
    scene.put("imapuidtable", row, "headercontent", "x")
    assert TRUTH_WRITE in names(scene.judged())
    scene.put("messageidtable", row[1:], "headercontent", "x")
    assert names(scene.judged()) == [TRUTH_WRITE]
    cells["headercontent"] = before
    scene.put("messageidtable", row[1:], "headercontent", message.content.headercontent)
    assert names(scene.judged()) == []


def test_the_same_value_at_a_time_of_no_user_is_a_truth_write(scene: NemesisScene) -> None:
    message = scene.message()
    cells = scene.table("imapuidtable").cells[message.messageid, message.mailboxid, message.uid]
    time, value = cells["flagseen"]
    cells["flagseen"] = (time + 10_000_000, value)
    assert names(scene.judged()) == [TRUTH_WRITE]
    cells["flagseen"] = (time, value)
    assert names(scene.judged()) == []


@pytest.mark.parametrize("table", ["imapuidtable", "mailbox", "messagev3"])
def test_a_truth_row_that_no_user_deleted_is_a_truth_write(scene: NemesisScene, table: str) -> None:
    message = scene.message()
    ids = {"imapuidtable": message.messageid, "mailbox": message.mailboxid}
    scene.delete(table, (ids.get(table, message.messageid),))
    assert TRUTH_WRITE in names(scene.judged())
    scene.table(table).deletes.clear()
    assert names(scene.judged()) == []


def test_an_older_flag_of_a_later_transaction_is_a_truth_write(scene: NemesisScene) -> None:
    message = scene.message()
    row = (message.messageid, message.mailboxid, message.uid)
    cells = scene.table("imapuidtable").cells[row]
    before = cells["flagseen"]
    scene.server.set_flags(message, SEEN)
    cells["flagseen"] = before
    assert TRUTH_WRITE in names(scene.judged())


def test_the_message_of_an_attachment_may_be_corrected(scene: NemesisScene) -> None:
    mailboxid = scene.server.create_mailbox("ana@example.org", "INBOX")
    content = with_attachments(random_content(random.Random(1)), random.Random(4))
    scene.server.append(mailboxid, content, SEEN)
    [key, *_] = scene.table("attachmentv2").cells
    scene.put("attachmentv2", key, "message_id", mailboxid)
    assert names(scene.judged()) == []
    scene.put("attachmentv2", key, "blobid", "another")
    assert names(scene.judged()) == [TRUTH_WRITE]


# --- doubled delta


def test_a_delta_that_was_added_twice_is_doubled(scene: NemesisScene) -> None:
    message = scene.message()
    quota = scene.table("currentquota").counters["#private&ana@example.org",]
    quota["storage"] += message.content.fullcontentoctets
    assert names(scene.judged()) == [DOUBLED]
    quota["storage"] -= message.content.fullcontentoctets
    assert names(scene.judged()) == []


def test_a_correction_that_was_made_twice_is_doubled(scene: NemesisScene) -> None:
    message = scene.message()
    counts = scene.table("mailboxcounters").counters[message.mailboxid,]
    writes = with_outcome(
        scene.writes(), "mailboxcounters", UserWriteKind.COUNT, UserOutcome.FAILED
    )
    for value, found in ((0, NOT_CONVERGED), (1, None), (2, DOUBLED)):
        counts["count"] = value
        judgement = check(writes, scene.final(), SKEW_US)
        assert names(judgement) == ([found] if found else [])


@pytest.mark.parametrize(
    "answer", [UserAnswer(UserOutcome.UNKNOWN), UserAnswer(UserOutcome.OK, attempts=2)]
)
def test_a_user_may_have_doubled_a_delta(scene: NemesisScene, answer: UserAnswer) -> None:
    message = scene.message()
    counts = scene.table("mailboxcounters").counters[message.mailboxid,]
    counts["count"] = 2
    writes = scene.writes()
    last = next(each for each in writes if each.statement.table == "mailboxcounters")
    again = replace(last, answer=answer)
    writes = [each for each in writes if answer.attempts == 1 or each is not last]
    judgement = check([*writes, again], scene.final(), SKEW_US)
    assert names(judgement) == [NOT_CONVERGED]
    assert judgement.weakened == 1


def test_of_a_counter_that_a_user_deleted_nothing_is_known(scene: NemesisScene) -> None:
    message = scene.message()
    scene.table("mailboxcounters").counters[message.mailboxid,]["count"] = 2
    key = (str(message.mailboxid),)
    told = UserStatement("mailboxcounters", UserWriteKind.DELETE, key)
    writes = scene.writes()
    judgement = check([*writes, replace(writes[-1], statement=told)], scene.final(), SKEW_US)
    assert (names(judgement), judgement.weakened) == ([NOT_CONVERGED], 1)


# --- not converged


def test_a_projection_that_its_user_left_wrong_has_not_converged(scene: NemesisScene) -> None:
    message = scene.message()
    slot = (message.mailboxid, message.uid)
    before = dict(scene.table("messageidtable").cells[slot])
    scene.server.set_flags(message, SEEN)
    scene.table("messageidtable").cells[slot] = dict(before)
    flags = [each for each in scene.writes() if each.statement.table == "messageidtable"][-1:]
    writes = [each for each in scene.writes() if each not in flags]
    judgement = check(writes, scene.final(), SKEW_US)
    assert set(names(judgement)) == {NOT_CONVERGED}
    cells = {each.cell for each in judgement.violations}
    assert cells == {"flagseen", "flagrecent", "modseq"}


# --- left to a person


def test_what_the_product_only_reports_is_left(scene: NemesisScene) -> None:
    message = scene.message()
    copied = scene.server.copy(message, message.mailboxid)
    slot = (message.mailboxid, message.uid)
    kept = dict(scene.table("messageidtable").cells[slot])
    scene.server.expunge(copied)
    scene.server.expunge(message)
    scene.table("messageidtable").deletes.clear()
    scene.table("messageidtable").cells.clear()
    scene.table("messageidtable").cells[slot] = kept
    judgement = scene.judged()
    assert names(judgement) == []
    assert len(judgement.left) == 1


def test_a_row_without_a_truth_is_left_if_it_was_reported(scene: NemesisScene) -> None:
    message = scene.message()
    slot = (message.mailboxid, message.uid)
    kept = dict(scene.table("messageidtable").cells[slot])
    scene.server.expunge(message)
    scene.table("messageidtable").deletes.clear()
    scene.table("messageidtable").cells[slot] = kept
    reported = {(str(message.mailboxid), message.uid)}
    unreported = {(str(message.mailboxid), message.uid + 1)}
    judgement = check(scene.writes(), scene.final(), SKEW_US, reported)
    assert (names(judgement), len(judgement.left)) == ([], 1)
    assert names(check(scene.writes(), scene.final(), SKEW_US, unreported)) == [LOST]


def test_a_reported_row_is_judged_if_the_truth_has_it(scene: NemesisScene) -> None:
    message = scene.message()
    scene.put("messageidtable", (message.mailboxid, message.uid), "flagseen", value=True)
    reported = {(str(message.mailboxid), message.uid)}
    assert names(check(scene.writes(), scene.final(), SKEW_US, reported)) == [OVERRIDDEN]


@pytest.mark.parametrize(
    ("count", "unseen", "wrong"), [(0, 0, 0), (1, 1, 0), (2, 1, 1), (-1, 2, 2)]
)
def test_counters_may_count_a_row_that_is_left_or_not(
    scene: NemesisScene, count: int, unseen: int, wrong: int
) -> None:
    message = scene.message(Flags(frozenset(), frozenset()))
    slot = (message.mailboxid, message.uid)
    kept = dict(scene.table("messageidtable").cells[slot])
    scene.server.expunge(message)
    scene.table("messageidtable").deletes.clear()
    scene.table("messageidtable").cells[slot] = kept
    counters = scene.table("mailboxcounters").counters[message.mailboxid,]
    counters["count"], counters["unseen"] = count, unseen
    reported = {(str(message.mailboxid), message.uid)}
    judgement = check(scene.writes(), scene.final(), SKEW_US, reported)
    assert [each.table for each in judgement.violations] == ["mailboxcounters"] * wrong


def test_counters_may_leave_out_a_message_that_lacks_cells(scene: NemesisScene) -> None:
    message = scene.message()
    for table in ("imapuidtable", "messageidtable"):
        for cells in scene.table(table).cells.values():
            cells.pop("fullcontentoctets")
    counters = scene.table("mailboxcounters").counters[message.mailboxid,]
    for count in (1, 0, -1):
        counters["count"] = count
        wrong = [each.cell for each in scene.judged().violations if each.cell == "count"]
        assert wrong == (["count"] if count < 0 else [])

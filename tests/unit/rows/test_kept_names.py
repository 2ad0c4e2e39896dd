"""Names and numbers that outlive a release: in the journal, on topics, in metrics, in settings.

Another value here is no refactoring: what an earlier release has kept could not be read any more,
or an alert would fall silent. Change it only with what reads the old one.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from checkpoints import clock, expiries, lease, lineage, tallies
from checkpoints.lineage_tables import LineageTables
from checkpoints.schema import upgrade
from reconcilers.counters.drift import Evidence
from reconcilers.declared.access_rights import EVENTS_BY_MAILBOX
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.rights import TRUTHS
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.tally import NOTHING, Sum
from reconcilers.limits.breakers import Breaker, BreakerLimits
from reconcilers.limits.ceiling import MINUTE
from reconcilers.rows.finding import Action, Attempts, State
from reconcilers.rows.memory import UUID_EPOCH_100NS
from reconcilers.words.model import NEVER_WRITTEN, NO_PROJECTION, PUBLISHED, SECOND, Kind
from streaming.commands.person.finding_formats import COLUMNS, TIMES
from streaming.counters import correct, loop
from streaming.monitoring import report
from streaming.pipeline import breakers, starting_point, supervisor
from streaming.pipeline.slices import Slice
from streaming.settings import Settings
from streaming.steps.look import NEAR_BY

KINDS = (
    "missing_row differing_cells extra_row incomplete_truth_row incomplete_in_both duplicate_uid"
    " shadowed_delete"
    " unresolved ambiguous_range_delete absent_without_delete content_lost missing_content"
    " left_over future_write_time unguardable mailbox_without_truth truth_lost_rows past_rows"
    " systematic counter_drift large_correction table_refuses table_unreadable unreadable"
    " unused_flags"
)
STATES = "intended stuck reported held observed verified superseded healed parked undoing undone"


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (Kind, KINDS),
        (State, STATES),
        (Action, "nothing look_again look_later close keep report repair stick"),
        (Breaker, "repairs removals corrections"),
        (Sum, "count unseen size"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_words_of_the_journal_and_of_metrics(words: type, kept: str) -> None:
    assert " ".join(words) == kept  # type: ignore[arg-type]
    assert " ".join(each.name.lower() for each in words) == kept  # type: ignore[attr-defined]


def test_the_tables_that_are_never_written() -> None:
    assert " ".join(sorted(NEVER_WRITTEN)) == (
        "acl eventstore imapuidtable mailbox mailboxpathv3 messagecounter messagev2 messagev3"
        " modseq"
    )


def test_the_families_with_their_truth_and_its_key() -> None:
    names = "message rights right_lists mailbox attachment attachment_reference"
    names += " mailbox_tally user_tally"
    assert " ".join(family.name for family in FAMILIES) == names
    message, rights, lists, objects, *attachments, mailbox, user = FAMILIES
    assert (objects.truth.table, objects.truth.source.name) == ("mailbox", "id")
    assert objects.wakes_on == ("mailbox", "mailboxpathv3")
    for family in (message, mailbox, user):
        assert (family.truth.table, family.truth.source.name) == ("imapuidtable", "messageid")
        assert family.truth.slot == ("mailboxid", "uid")
        assert " ".join(family.truth.required) == (
            "modseq internaldate bodystartoctet fullcontentoctets headercontent"
        )
    assert (rights.truth.table, rights.truth.source.name) == ("eventstore", "aggregateid")
    assert [*TRUTHS] == ["eventstore", "aclv2", "acl"]
    assert rights.wakes_on == ("eventstore", "usermailboxacl")
    assert (lists.truth, lists.wakes_on) == (EVENTS_BY_MAILBOX, ("eventstore", "aclv2"))
    assert replace(lists.truth, slot=rights.truth.slot) == rights.truth
    for family, table in zip(attachments, ("attachmentv2", "attachmentmessageid"), strict=True):
        assert (family.truth.table, family.truth.source.name) == ("messagev3", "messageid")
        assert family.wakes_on == ("messagev3", "messagev2", table)
    assert [LineageTables(family).expiries for family in (rights, lists, *attachments)] == [
        "expiries_rights",
        "expiries_right_lists",
        "expiries_attachments",
        "expiries_references",
    ]
    assert message.reads == ()
    assert message.wakes_on[:2] == ("imapuidtable", "messageidtable")
    assert (mailbox.wakes_on, mailbox.reads) == ((), ("messageidtable", "mailbox"))
    assert (user.wakes_on, user.reads) == ((), ("messageidtable", "mailbox", "mailboxpathv3"))


def test_the_projections_and_tallies_with_their_tables() -> None:
    tables = {each.name: each.table for family in FAMILIES for each in family.projections}
    assert tables == {
        "messages": "messageidtable",
        "deleted_uids": "messagedeleted",
        "unseen_uids": "firstunseen",
        "recent_uids": "mailboxrecents",
        "applicable_flags": "applicableflag",
        "user_rights": "usermailboxacl",
        "listed_rights": "aclv2",
        "mailbox_paths": "mailboxpathv3",
        "attachments": "attachmentv2",
        "attachment_references": "attachmentmessageid",
    }
    cells = {
        each.table: (
            each.name,
            each.key,
            {of.value: cell.column for of, cell in each.cells.items()},
        )
        for family in FAMILIES
        for each in family.tallies
    }
    assert cells["mailboxcounters"] == (
        "mailbox_counters",
        "mailboxid",
        {"count": "count", "unseen": "unseen"},
    )
    assert cells["currentquota"] == (
        "current_quota",
        "quotaroot",
        {"count": "messagecount", "size": "storage"},
    )


def test_the_rows_of_a_quota_of_newer_james() -> None:
    newer = {each.table: each for each in USER_TALLY.tallies}["quotacurrentvalue"]
    of_mailbox = {"quotacomponent": "MAILBOX"}
    assert (newer.name, newer.key) == ("current_quota", "identifier")
    assert {of.value: (cell.column, cell.row) for of, cell in newer.cells.items()} == {
        "count": ("currentvalue", of_mailbox | {"quotatype": "count"}),
        "size": ("currentvalue", of_mailbox | {"quotatype": "size"}),
    }


def test_which_tallies_have_a_row_for_each_root_and_which_may_make_one() -> None:
    tallies = [each for family in FAMILIES for each in family.tallies]
    roots = [each.table for each in tallies if each.per_quota_root]
    assert roots == ["currentquota", "quotacurrentvalue"]
    assert [each.table for each in tallies if each.may_create_row] == ["mailboxcounters"]


def test_which_table_is_optional_and_which_cell_guards_a_set() -> None:
    projections = {each.name: each for each in MESSAGE.projections}
    optional = {name: each.optional for name, each in projections.items() if each.optional}
    assert optional == {"recent_uids": "recents"}
    guards = {name: each.write_time_of_sets for name, each in projections.items()}
    assert guards == {**dict.fromkeys(projections), "messages": "modseq"}


def test_what_is_kept_where_and_for_how_long() -> None:
    assert (upgrade.SEQUENCE, upgrade.RECORDS_TABLE) == ("own", "schema_steps")
    assert upgrade.ONE_COPY == {"class": "SimpleStrategy", "replication_factor": "1"}
    assert timedelta(days=8) == expiries.KEPT_AFTER_DUE
    assert timedelta(days=20) == lineage.KEPT_AFTER_LOSS
    assert timedelta(seconds=60) == lease.LASTS
    assert tallies.MARKS_KEPT_DAYS == 8
    assert tallies.marks_begin(10**18) == 10**18 - 8 * 24 * clock.HOUR
    assert NO_PROJECTION == ""


def test_times_are_microseconds() -> None:
    assert (SECOND, MINUTE, NEAR_BY, clock.HOUR) == (10**6, 60 * 10**6, 60 * 10**6, 3600 * 10**6)
    assert UUID_EPOCH_100NS == 0x01B21DD213814000


def test_the_fields_of_a_record_of_the_suspects_topic() -> None:
    """A key that another release has published is looked at with all that was known of it."""
    assert PUBLISHED == {
        "oldest": "bigint",
        "deleted_from": "text",
        "deleted_at": "bigint",
        "projection": "text",
        "suspected": "text",
    }


def test_a_slice_has_the_name_that_another_release_has_given_it() -> None:
    """By it what is done again, after an upgrade too, is known to be the same."""
    begin = {("james.mail.imapuidtable", 1): 7, ("james.mail.imapuidtable", 0): 5}
    assert Slice(begin, begin, read_at=0, done_before=0).name == "a2490b2227371a40"


def test_the_limits_of_the_core_are_those_of_the_settings_unless_told() -> None:
    repair, tally = Settings().repair, Settings().tally
    assert BreakerLimits() == BreakerLimits(
        suspects_per_minute=repair.suspects_per_minute,
        suspect_share=repair.suspect_share,
        removals_per_minute=repair.removals_per_minute,
        removal_share=repair.removal_share,
        share_min_keys=repair.share_min_keys,
    )
    assert Attempts() == Attempts(most=repair.attempts, apart=0)
    assert Evidence() == Evidence(looks=tally.looks, of=2 * tally.looks)
    assert {Sum.COUNT: 0, Sum.UNSEEN: 0, Sum.SIZE: 0} == NOTHING


def test_the_columns_of_a_list_of_findings() -> None:
    assert " ".join(COLUMNS) == (
        "time family projection mailboxid uid messageid username name namespace mailboxname id"
        " idasuuid attachmentidasuuid message"
        " quotaroot kind state attempts accepted found_at next_look waits sentence"
    )
    assert sorted(TIMES) == ["found_at", "next_look", "time"]


def test_everything_logs_as_the_reconciler() -> None:
    ours = logging.getLogger("reconciler")
    assert all(
        each.log is ours for each in (breakers, correct, loop, report, starting_point, supervisor)
    )

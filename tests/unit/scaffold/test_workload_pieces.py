"""The small pieces of the mail workload: numbers, clocks, directory, schema, comparison."""

import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from deploy.comparison.messages import DifferenceKind, compare_row
from deploy.mailserver.directory import Directory
from deploy.mailserver.history import ProjectionWrite, Statement
from deploy.mailserver.james import cdc_tables, schema_statements
from deploy.mailserver.mail import Clock, Flags, Message, Numbers
from deploy.mailserver.mailbag import random_change, random_content
from deploy.mailserver.mailserver import flags_write, insert_write
from deploy.mailserver.projection import statement_of
from deploy.mailserver.workload import Workload

MAILBOX, MESSAGE = uuid.uuid1(), uuid.uuid1()


def a_message(flags: Flags, modseq: int = 1) -> Message:
    return Message(random_content(random.Random(1)), MAILBOX, 1, modseq, flags)


def test_numbers_are_handed_out_once_in_each_mailbox() -> None:
    numbers = Numbers()
    with ThreadPoolExecutor(8) as pool:
        uids = list(pool.map(lambda _: numbers.next_uid(MAILBOX), range(500)))
    assert sorted(uids) == list(range(1, 501))
    assert numbers.next_uid(MESSAGE) == 1
    assert numbers.next_modseq(MAILBOX) == 1


def test_a_clock_never_repeats_itself() -> None:
    clock = Clock()
    times = [clock.now_us() for _ in range(1000)]
    assert len(set(times)) == 1000
    assert times == sorted(times)


def test_clocks_can_be_apart() -> None:
    ahead_us = Clock(300).now_us() - Clock(-300).now_us()
    assert 590_000 < ahead_us <= 600_000


def test_a_message_is_checked_out_by_one_only() -> None:
    directory = Directory()
    directory.check_in(MESSAGE)
    assert directory.check_out(random.Random(1)) == MESSAGE
    assert directory.check_out(random.Random(1)) is None
    directory.check_in(MESSAGE)
    assert len(directory) == 1


def test_a_message_rests_where_clocks_differ() -> None:
    assert Workload().rest_s() == 0
    assert Workload(clock_offsets_ms=(-300, 0)).rest_s() == pytest.approx(0.4)
    directory = Directory(rest_s=60)
    directory.check_in(MESSAGE)
    assert directory.check_out(random.Random(1)) is None


def test_a_change_of_flags_always_changes_something() -> None:
    chance = random.Random(1)
    flags = Flags()
    for _ in range(200):
        changed = random_change(flags, chance)
        assert changed != flags
        flags = changed


def test_whoever_changes_flags_has_seen_what_was_recent() -> None:
    changed = random_change(Flags(frozenset({"recent", "draft"})), random.Random(1))
    assert "recent" not in changed.system


def test_the_schema_has_the_given_keyspace_only() -> None:
    statements = schema_statements("other_mail")
    assert len(statements) == 24
    assert all("other_mail." in statement and "$" not in statement for statement in statements)
    assert all(any(f".{table} " in s for s in statements) for table in cdc_tables())


def test_a_keyspace_name_that_needs_quotes_is_refused() -> None:
    with pytest.raises(ValueError, match="lower-case"):
        schema_statements('a"; DROP')


def test_an_insert_is_an_update_of_all_columns_and_adds_user_flags() -> None:
    cql, values = statement_of(insert_write("append", a_message(Flags(user=frozenset("x")))), "t")
    assert cql.startswith("UPDATE t USING TIMESTAMP ? SET messageid = ?, modseq = ?")
    assert cql.count("?") == len(values) + 1
    assert "userflags = userflags + ?" in cql


def test_a_flag_change_sends_changed_cells_and_deltas_only() -> None:
    before = a_message(Flags(frozenset({"draft"}), frozenset({"old"})), modseq=1)
    flags = Flags(frozenset({"draft", "seen"}), frozenset({"new"}))
    after = replace(before, flags=flags, modseq=2)
    write = flags_write(before, after)
    assert write.cells == {"modseq": 2, "flagseen": True}
    cql, values = statement_of(write, "t")
    assert "userflags = userflags + ?, userflags = userflags - ?" in cql
    assert values == [2, True, {"new"}, {"old"}, MAILBOX, 1]


def test_a_delete_names_mailbox_and_uid() -> None:
    write = ProjectionWrite(Statement.DELETE, "expunge", MESSAGE, MAILBOX, 7)
    cql, values = statement_of(write, "t")
    assert cql == "DELETE FROM t USING TIMESTAMP ? WHERE mailboxid = ? AND uid = ?"
    assert values == [MAILBOX, 7]


ROW: dict[str, Any] = {
    "mailboxid": MAILBOX,
    "uid": 1,
    "messageid": MESSAGE,
    "modseq": 3,
    "internaldate": 5,
    "flagseen": False,
    "userflags": None,
}
PARTIAL = {**dict.fromkeys(ROW), "mailboxid": MAILBOX, "uid": 1, "modseq": 3}
OTHER = {**ROW, "messageid": uuid.uuid1()}


@pytest.mark.parametrize(
    ("claims", "projected", "found"),
    [
        ([ROW], ROW, None),
        ([ROW], {**ROW, "userflags": set()}, None),
        ([ROW], None, (DifferenceKind.MISSING, ())),
        ([], ROW, (DifferenceKind.EXTRA, ())),
        ([], PARTIAL, (DifferenceKind.EXTRA, ())),
        ([ROW], {**ROW, "flagseen": None}, (DifferenceKind.CELLS, ("flagseen",))),
        ([ROW], {**ROW, "userflags": {"x"}}, (DifferenceKind.CELLS, ("userflags",))),
        ([ROW], OTHER, (DifferenceKind.CELLS, ("messageid",))),
        ([ROW], PARTIAL, (DifferenceKind.CELLS, ("flagseen", "internaldate", "messageid"))),
        (
            [PARTIAL | {"messageid": MESSAGE}],
            ROW,
            (DifferenceKind.INCOMPLETE_TRUTH, ("internaldate",)),
        ),
        ([ROW, OTHER], ROW, (DifferenceKind.DUPLICATE_UID, ())),
    ],
)
def test_comparison_of_one_row(claims: Any, projected: Any, found: Any) -> None:
    differences = [(d.kind, d.columns) for d in compare_row(claims, projected)]
    assert differences == ([found] if found else [])

"""`reconcile doctor` on the role's rights, and the grants that deploy/cassandra/roles.cql ships."""

import re
from pathlib import Path
from typing import Any

import pytest

from reconcilers.declared.family import Schema
from reconcilers.mailboxes.rows import MAILBOX, PATHS, UIDS
from reconcilers.words.model import NEVER_WRITTEN
from streaming.commands.doctor.checks import permissions as rights
from streaming.commands.doctor.checks.check import Level
from streaming.settings import Settings
from tests.fakes.checked_cluster import (
    EVERYTHING,
    JAMES,
    MESSAGES_ALONE,
    NEWER,
    FakeCluster,
    levels,
    looked,
)

ROLES = Path(__file__).resolve().parents[3] / "deploy" / "cassandra" / "roles.cql"
GRANT = re.compile(r"^GRANT (\w+) ON (TABLE|KEYSPACE) ([\w.]+) TO reconciler;$", re.MULTILINE)


def rights_in(text: str) -> set[rights.Right]:
    found = GRANT.findall(text)
    return {rights.Right(permission, *place.split(".")) for permission, _, place in found}


def granted_at_once() -> set[rights.Right]:
    return rights_in(ROLES.read_text(encoding="utf-8"))


def shipped(schema: Schema = JAMES) -> set[rights.Right]:
    """With those that are comments, as far as the keyspace has their tables."""
    text = ROLES.read_text(encoding="utf-8").replace("\n-- GRANT", "\nGRANT")
    james, absent = "apache_james", rights_in(text)
    return {each for each in absent if each.keyspace != james or each.table in schema}


def as_listed(granted: set[rights.Right]) -> frozenset[tuple[str, str]]:
    """As Cassandra lists them."""
    return frozenset((each.permission, f"<{each.resource.lower()}>") for each in granted)


def needed(schema: Schema = JAMES, **sections: Any) -> frozenset[rights.Right]:
    settings = Settings.model_validate({**MESSAGES_ALONE, **sections})
    return rights.needed(settings, settings.families(), schema)


def test_the_shipped_role_has_what_is_needed_with_all_switched_on_and_no_more() -> None:
    assert shipped() == needed(**EVERYTHING)
    assert shipped() > needed()
    assert not {
        each for each in shipped() if each.permission == "MODIFY" and each.table in NEVER_WRITTEN
    }


def test_only_the_role_of_the_fix_writes_mailbox_objects() -> None:
    text = ROLES.read_text(encoding="utf-8")
    found = re.findall(r"^GRANT (\w+) ON TABLE apache_james\.(\w+) TO (\w+);$", text, re.MULTILINE)
    of_fix = {(right, table) for right, table, role in found if role == "reconciler_mailboxes"}
    objects = {(right, table) for right in ("SELECT", "MODIFY") for table in (MAILBOX, PATHS)}
    assert of_fix == objects | {("SELECT", "messageidtable"), ("SELECT", UIDS)}
    of_objects = [(role, right) for right, table, role in found if table in (MAILBOX, PATHS)]
    assert {role for role, right in of_objects if right == "MODIFY"} == {"reconciler_mailboxes"}


@pytest.mark.parametrize("sections", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_the_shipped_role_is_fine(sections: dict[str, Any]) -> None:
    cluster = FakeCluster(granted=as_listed(shipped()))
    assert levels(looked(rights.role, cluster, **sections)) == {Level.OK}


def test_what_is_switched_off_needs_no_right() -> None:
    tables = {each.table for each in needed() if each.permission == "MODIFY"}
    assert tables == {"", "messageidtable"}
    only = needed(tally={"projections": ["mailbox_counters"]})
    assert {each.table for each in only - needed()} == {"mailboxcounters", "mailbox"}
    cluster = FakeCluster(granted=as_listed(set(needed())))
    assert levels(looked(rights.role, cluster)) == {Level.OK}
    assert levels(looked(rights.role, cluster, **EVERYTHING)) == {Level.PROBLEM}


@pytest.mark.parametrize("schema", [JAMES, NEWER], ids=["3.8", "3.9 and later"])
def test_no_shipped_grant_names_a_table_that_a_version_of_james_lacks(schema: Schema) -> None:
    """It is an error there, and what follows in the file would not be granted."""
    assert {each for each in granted_at_once() if each.keyspace == "apache_james"} <= {
        each for each in shipped(schema) if each.table in schema
    }


@pytest.mark.parametrize("schema", [JAMES, NEWER], ids=["3.8", "3.9 and later"])
def test_doctor_grants_what_the_keyspace_has_besides(schema: Schema) -> None:
    """What stands as a comment in the file is what is missing after it was run."""
    cluster = FakeCluster(granted=as_listed(granted_at_once()))
    asked = {cql for each in looked(rights.role, cluster, schema, **EVERYTHING) for cql in each.cql}
    rest = shipped(schema) - granted_at_once()
    assert asked == {f'GRANT {each.permission} ON {each.resource} TO "reconciler"' for each in rest}
    assert {each.table for each in rest} & set(schema)


def test_newer_james_needs_the_rights_that_are_shipped_for_it() -> None:
    assert needed(NEWER, **EVERYTHING) == shipped(NEWER)
    assert needed(JAMES | NEWER, **EVERYTHING) == shipped(JAMES | NEWER)


@pytest.mark.parametrize(
    "resource", ["<all keyspaces>", "<keyspace apache_james>", "<table apache_james.imapuidtable>"]
)
def test_a_role_that_may_write_the_truth_is_warned_of(resource: str) -> None:
    cluster = FakeCluster(granted=as_listed(shipped()) | {("MODIFY", resource)})
    (only,) = looked(rights.role, cluster)
    assert only.level is Level.WARNING
    assert "imapuidtable" in only.what


@pytest.mark.parametrize(("truth", "warns"), [("eventstore", False), ("aclv2", True)])
def test_lists_may_be_written_only_where_they_are_not_the_truth(truth: str, *, warns: bool) -> None:
    cluster, sections = FakeCluster(granted=as_listed(shipped())), {**EVERYTHING}
    told = looked(rights.role, cluster, **{**sections, "rights": {"truth": truth}})
    assert any("may write aclv2" in each.what for each in told) is warns


@pytest.mark.parametrize("lost", sorted(needed(**EVERYTHING)))
def test_a_missing_right_is_found_with_its_grant(lost: rights.Right) -> None:
    cluster = FakeCluster(granted=as_listed(shipped() - {lost}))
    (only,) = looked(rights.role, cluster, **EVERYTHING)
    assert only.level is not Level.OK
    assert only.cql == (f'GRANT {lost.permission} ON {lost.resource} TO "reconciler"',)


@pytest.mark.parametrize(("sections", "level"), [({}, Level.WARNING), (EVERYTHING, Level.PROBLEM)])
def test_pending_hints_must_be_seen_where_counters_are_corrected(
    sections: dict[str, Any], level: Level
) -> None:
    hints = rights.Right("SELECT", "system_views")
    cluster = FakeCluster(granted=as_listed(shipped() - {hints}))
    assert levels(looked(rights.role, cluster, **sections)) == {level}


def test_a_superuser_and_unknown_rights_are_warned_of() -> None:
    (superuser,) = looked(rights.role, FakeCluster(superuser=True))
    (unknown,) = looked(rights.role, FakeCluster(refuses="AllowAllAuthorizer"))
    (nobody,) = looked(rights.role, cassandra={})
    assert {superuser.level, unknown.level, nobody.level} == {Level.WARNING}
    assert "superuser" in superuser.what
    assert "AllowAllAuthorizer" in unknown.what
    assert "no role" in nobody.what


def test_an_unreadable_truth_is_a_problem() -> None:
    assert levels(looked(rights.truth_readable)) == {Level.OK}
    assert levels(looked(rights.truth_readable, FakeCluster(refuses="no"))) == {Level.PROBLEM}

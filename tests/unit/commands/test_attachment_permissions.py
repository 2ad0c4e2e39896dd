"""The permissions that the families of attachments need."""

from reconcilers.declared.families.attachment import ATTACHMENT
from reconcilers.declared.families.attachment_reference import ATTACHMENT_REFERENCE
from streaming.commands.doctor.checks.permissions import needed
from streaming.settings import Settings
from tests.builders.attachments import SCHEMA

READ = {"messagev2", "messagev3", "imapuidtable", "attachmentowners"}
REPAIRED = {"attachmentv2", "attachmentmessageid"}


def test_what_is_read_and_what_is_written() -> None:
    schema = {**SCHEMA, "imapuidtable": {"messageid": "timeuuid"}}
    settings = Settings()
    rights = needed(settings, (ATTACHMENT, ATTACHMENT_REFERENCE), schema)
    james = [each for each in rights if each.keyspace == settings.cassandra.keyspace]
    assert {each.table for each in james if each.permission == "SELECT"} == READ | REPAIRED
    assert {each.table for each in james if each.permission == "MODIFY"} == REPAIRED

"""Which mailboxes have messages, as James writes it: a uid first, then the row that lists it."""

import uuid
from pathlib import Path

import pytest
from cassandra.cluster import Session

from streaming.settings import load
from streaming.tables import open_session
from streaming.tables.mailbox_objects import MailboxObjects
from tests.endpoints import Endpoints
from tests.stack.boxes import Boxes
from tests.stack.streams import write_settings

pytestmark = pytest.mark.stack


def test_a_mailbox_has_messages_if_it_lists_one_or_ever_gave_one_a_uid(
    stack: Endpoints, cassandra: Session, mail_keyspace: str, tmp_path: Path
) -> None:
    """The row that lists a message is a projection: its write may have failed."""
    boxes = Boxes(cassandra, mail_keyspace)
    boxes.message("a")
    boxes.uid("b")
    boxes.mailbox("c", "never had mail")
    config = write_settings(tmp_path / "fix.toml", stack, mail_keyspace, "unused", {})
    settings = load(config, {}).cassandra
    session = open_session(settings)
    try:
        objects = MailboxObjects(session, settings, rows_per_second=1_000)
        asked = [boxes.ids[each] for each in "abc"] + [uuid.uuid1()]
        assert objects.with_messages(asked) == {boxes.ids["a"], boxes.ids["b"]}
    finally:
        session.cluster.shutdown()

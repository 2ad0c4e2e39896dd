"""A table of attachments that this James does not write is neither compared nor written."""

import uuid
from collections.abc import Iterator
from functools import partial

import pytest
from cassandra.cluster import Session

from tests.stack.attached import Attached, a_name
from tests.stack.conftest import Scenes
from tests.stack.scenes import Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="servers")]


def left_behind(session: Session, keyspace: str) -> None:
    """Messages with attachments, and no reference: as James 3.7 and later write them."""
    for number in range(6):
        session.execute(
            f"UPDATE {keyspace}.messagev3 SET fullcontentoctets = 1, attachments ="
            f" [{{id: 'newer{number}'}}] WHERE messageid = {uuid.uuid1()}"
        )


@pytest.fixture(scope="module")
def newer(scenes: Scenes) -> Iterator[Scene]:
    yield from scenes({"attachments": {"tables": ["attachmentmessageid"]}}, prepared=left_behind)


def test_a_table_that_this_james_does_not_write_is_left_alone(newer: Scene) -> None:
    message, name = Attached(newer), a_name()
    message.write_content(name)
    newer.write_truth(message.place, cells())
    until("its listing row is there", partial(newer.agrees, message.place))
    (told,) = newer.stream.said("nothing is compared or written there")
    assert "attachmentmessageid has none of the 5 newest rows" in str(told["message"])
    assert newer.metric("reconciler_keys_examined_total", family="attachment_reference") == 0
    assert newer.execute("SELECT * FROM $mail.attachmentmessageid").one() is None
    warned = newer.command("doctor").stdout
    assert "warning  attachmentmessageid has none of the 5 newest rows" in warned

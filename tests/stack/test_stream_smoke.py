"""The whole chain once, as a user runs it: a lost projection row comes back and is verified."""

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.endpoints import Endpoints
from tests.stack.streams import Stream, until, write_settings

pytestmark = pytest.mark.stack


def test_a_lost_projection_row_comes_back_and_is_verified(
    stack: Endpoints, cassandra: Session, mail_keyspace: str, tmp_path: Path
) -> None:
    own = f"reconciler_{uuid.uuid4().hex[:8]}"
    config = write_settings(tmp_path / "reconcile.toml", stack, mail_keyspace, own, {})
    message, mailbox = uuid.uuid1(), uuid.uuid1()
    with Stream(config) as stream:
        stream.wait_until_watching()
        cassandra.execute(
            f"INSERT INTO {mail_keyspace}.imapuidtable (messageid, mailboxid, uid, modseq,"
            " flagseen, userflags, internaldate, bodystartoctet, fullcontentoctets, headercontent)"
            " VALUES (%s, %s, 5, 1, true, {'a', 'b'}, %s, 3, 4, 'h') IF NOT EXISTS",
            (message, mailbox, datetime.now(UTC)),
        )
        query = f"SELECT * FROM {mail_keyspace}.messageidtable WHERE mailboxid = %s"
        row = until("the row came back", lambda: cassandra.execute(query, (mailbox,)).one())
        assert (row.uid, row.messageid, row.flagseen) == (5, message, True)
        assert set(row.userflags) == {"a", "b"}
        until("it is verified", lambda: stream.said("verified: messages"))
        assert stream.stop() == 0

"""The stack that all tests here share: writes become events, keyspaces come and go."""

import uuid

import pytest
from cassandra.cluster import Session

from tests.endpoints import Endpoints
from tests.events import comes


def test_a_write_in_a_fresh_keyspace_becomes_an_event(
    stack: Endpoints, cassandra: Session, fresh_keyspace: str
) -> None:
    table = f"{fresh_keyspace}.messagedeleted"
    mailbox = uuid.uuid1()
    cassandra.execute(f"INSERT INTO {table} (mailboxid, uid) VALUES (%s, 7)", (mailbox,))
    event = {"mailboxid": str(mailbox), "uid": 7}
    assert comes(stack.bootstrap_servers, stack.topic_prefix, event)


def test_a_write_in_the_shared_keyspace_becomes_an_event(
    stack: Endpoints, cassandra: Session, mail_keyspace: str
) -> None:
    mailbox = uuid.uuid1()
    table = f"{mail_keyspace}.firstunseen"
    cassandra.execute(f"INSERT INTO {table} (mailboxid, uid) VALUES (%s, 7)", (mailbox,))
    event = {"mailboxid": str(mailbox), "uid": 7}
    assert comes(stack.bootstrap_servers, stack.topic_prefix, event)


def test_whatever_takes_the_stack_is_marked(
    request: pytest.FixtureRequest, stack: Endpoints
) -> None:
    assert request.node.get_closest_marker("stack")

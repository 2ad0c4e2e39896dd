"""A stack that checks passwords and rights, as an admin prepares it with the shipped roles.cql."""

import ssl
from collections.abc import Iterable
from contextlib import AbstractContextManager

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Session
from cassandra.policies import ConstantReconnectionPolicy

from checkpoints.cassandra import create_schema
from deploy import roles
from deploy.embedded import Stack
from deploy.mailserver import james
from tests.sessions import session_at

OF_JAMES_3_8 = ("messagev2", "currentquota")
"""Tables of the demo's schema that newer James does not have."""
OWN = "reconciler"
ROLE, MAIL_SERVER = (roles.ROLE, roles.PASSWORD), ("james", "secret")
"""Name and password of the shipped role, and of the mail server's."""
LOGIN = {"cassandra": dict(zip(("username", "password"), ROLE, strict=True))}
"""The settings of a reconciler under its role."""


def session_of(stack: Stack, username: str, password: str) -> AbstractContextManager[Session]:
    """A session under somebody's login."""
    login, tls = PlainTextAuthProvider(username, password), None
    if stack.spec.tls is not None:
        made = stack.spec.tls.certificates
        tls = ssl.create_default_context(cafile=made.ca)
        tls.load_cert_chain(made.certificate("admin"), made.key("admin"))
    again = ConstantReconnectionPolicy(1.0, max_attempts=None)
    more = {"auth_provider": login, "ssl_context": tls, "protocol_version": 5}
    more |= {"reconnection_policy": again}
    return session_at("127.0.0.1", stack.cassandra_port, **more)


def prepare(stack: Stack, admin: Session, with_grants_of: Iterable[str] = OF_JAMES_3_8) -> None:
    """What an admin makes: James's tables and user, the shipped role, our keyspace."""
    james.create_schema(admin, stack.keyspace)
    for statement in roles.statements(with_grants_of):
        admin.execute(statement)
    create_schema(admin, OWN)
    name, password = MAIL_SERVER
    admin.execute(f"CREATE ROLE {name} WITH LOGIN = true AND PASSWORD = '{password}'")
    for right in ("SELECT", "MODIFY"):
        admin.execute(f"GRANT {right} ON KEYSPACE {stack.keyspace} TO {name}")

"""Real Cassandra with change capture, Kafka and the Debezium agent, without Docker."""

from deploy.embedded.spec import ADMIN, Credentials, Wanted
from deploy.embedded.stack import Stack, open_session

__all__ = ["ADMIN", "Credentials", "Stack", "Wanted", "open_session"]

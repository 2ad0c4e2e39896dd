"""A secure stack: what is decided at its first start, and what its servers are told."""

from pathlib import Path

import pytest
import yaml
from kafka.admin import ACLOperation

from deploy.embedded.cassandra_node import CassandraNode
from deploy.embedded.errors import MismatchError
from deploy.embedded.kafka_clients import SCRIPT, options, rights
from deploy.embedded.layout import Layout
from deploy.embedded.spec import ADMIN, Spec, Wanted, decide, load

TABLES = ("imapuidtable",)
DATA = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def spec(layout: Layout) -> Spec:
    return decide(layout, Wanted(tables=TABLES, secure=True))


def test_a_stack_stays_secure(layout: Layout, spec: Spec) -> None:
    assert spec.tls is not None
    assert spec.admin == ADMIN
    assert spec.agent_bootstrap_servers == f"127.0.0.1:{spec.tls.broker}" != spec.bootstrap_servers
    assert load(layout) == spec == decide(layout, Wanted()) == decide(layout, Wanted(secure=True))


def test_a_stack_does_not_become_secure(layout: Layout) -> None:
    spec = decide(layout, Wanted(tables=TABLES))
    assert options(spec) == {"bootstrap_servers": spec.bootstrap_servers}
    assert spec.agent_bootstrap_servers == spec.bootstrap_servers
    with pytest.raises(MismatchError, match="was made with TLS off"):
        decide(layout, Wanted(secure=True))


def test_a_node_asks_its_clients_for_certificates(layout: Layout, spec: Spec) -> None:
    CassandraNode(layout, spec).write_config()
    told = yaml.safe_load(layout.cassandra_yaml.read_text(encoding="utf-8"))
    encryption = told["client_encryption_options"]
    assert encryption["enabled"]
    assert encryption["require_client_auth"]
    assert not encryption["optional"]
    assert encryption["truststore"] == str(layout.certificates / "ca.pem")
    assert told["authorizer"] == "CassandraAuthorizer"


def test_the_shipped_rights_in_kafka() -> None:
    given = {
        (each.principal, each.resource_pattern.resource_name, ACLOperation(each.operation).name)
        for each in rights(SCRIPT.read_text(encoding="utf-8"))
    }
    ours = {("User:reconciler", "james", each) for each in DATA}
    ours |= {("User:reconciler", "reconciler.", each) for each in (*DATA, "WRITE", "CREATE")}
    assert given == ours | {("User:CN=agent", "james", each) for each in ("WRITE", "DESCRIBE")}

"""The ready settings file of the reconciler for one stack."""

import json
from collections.abc import Mapping
from typing import Any

from deploy.embedded.kafka_clients import PASSWORD, USER
from deploy.embedded.layout import Layout
from deploy.embedded.spec import Spec

Sections = dict[str, dict[str, Any]]
"""Settings by section."""


def render(layout: Layout, spec: Spec) -> str:
    """The text of reconcile.toml: where the servers are, and where the checkpoint goes."""
    sections: Sections = {
        "cassandra": {
            "hosts": [node.host for node in spec.nodes],
            "port": spec.ports.cassandra,
            "keyspace": spec.keyspace,
            "jmx_port": spec.ports.cassandra_jmx,
        },
        "kafka": {
            "bootstrap_servers": spec.bootstrap_servers,
            "topic_prefix": spec.topic_prefix,
        },
        "stream": {"checkpoint_dir": str(layout.root / "checkpoint")},
        "agent": {"http": [node.agent_url for node in spec.nodes]},
    }
    if len(spec.data_centres) > 1:
        levels = {"consistency": "QUORUM", "serial_consistency": "SERIAL"}
        sections["cassandra"] |= {"local_dc": spec.data_centre, **levels}
    if spec.admin is not None:
        sections["cassandra"]["username"] = spec.admin.username
        sections["cassandra"]["password"] = spec.admin.password
    if spec.tls is not None and spec.admin is not None:
        made = spec.tls.certificates
        own = {"tls_certificate": str(made.certificate(USER)), "tls_key": str(made.key(USER))}
        of_cassandra, of_kafka = (
            made.folder / f"{name}.password" for name in ("cassandra", "kafka")
        )
        of_cassandra.write_text(spec.admin.password, encoding="utf-8")
        of_kafka.write_text(PASSWORD, encoding="utf-8")
        del sections["cassandra"]["password"]
        sections["cassandra"] |= {"tls": True, "tls_ca": str(made.ca), **own}
        sections["cassandra"]["password_file"] = str(of_cassandra)
        login = {"username": USER, "password_file": str(of_kafka)}
        sections["kafka"] |= {"security_protocol": "SASL_SSL", "tls_ca": str(made.ca), **login}
    return as_toml(sections)


def over(below: Mapping[str, Mapping[str, Any]], above: Sections) -> Sections:
    """The settings of both; of one that both have, the value above."""
    names = {**below, **above}
    return {name: {**below.get(name, {}), **above.get(name, {})} for name in names}


def as_toml(sections: Sections) -> str:
    """The text of a settings file; texts, numbers and lists are written as in JSON."""
    lines = []
    for name, values in sections.items():
        lines.append(f"[{name}]")
        lines += [f"{_key(name)} = {json.dumps(value)}" for name, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def _key(name: str) -> str:
    """A name, in quotes if it has dots: else no option may stand beside another below it."""
    return json.dumps(name) if "." in name else name

"""How the stack's own admin reaches Kafka, and the users and rights that a secure Kafka has."""

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError

from deploy.embedded.spec import Spec
from deploy.embedded.templates import DEPLOY

PASSWORD = "of-this-stack"
"""Of Kafka's users, the admin and the reconciler."""
USER = "reconciler"
SCRIPT = DEPLOY / "kafka" / "acls.sh"
"""The rights as an operator grants them; here each line is granted without kafka-acls.sh."""
OPERATIONS = {each.name.replace("_", "").lower(): each for each in ACLOperation}


def options(spec: Spec) -> dict[str, Any]:
    """What a client of kafka-python takes to connect as the admin."""
    servers: dict[str, Any] = {"bootstrap_servers": spec.bootstrap_servers}
    if spec.tls is None:
        return servers
    return servers | {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(spec.tls.certificates.ca),
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "admin",
        "sasl_plain_password": PASSWORD,
    }


def grant(admin: KafkaAdminClient) -> None:
    """Make the reconciler's user for SCRAM, and give it and the agent their rights.

    Raises KafkaError.
    """
    for each in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        set_password(admin, each, PASSWORD)
    if failed := admin.create_acls(list(rights(SCRIPT.read_text(encoding="utf-8"))))["failed"]:
        raise KafkaError(f"rights are not granted: {failed[0]}")


def set_password(admin: KafkaAdminClient, mechanism: ScramMechanism, password: str) -> None:
    """Give the reconciler's user this password. Raises KafkaError."""
    user = UserScramCredentialUpsertion(USER, mechanism, password)
    for failed in filter(None, admin.alter_user_scram_credentials([user]).values()):
        raise KafkaError(f"the password of {USER} is not set: {failed}")


def rights(script: str) -> Iterator[ACL]:
    """What the calls of `acl` in a script grant, options as of kafka-acls.sh."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--allow-principal")
    parser.add_argument("--operation", action="append")
    for each in ("topic", "group"):
        parser.add_argument(f"--{each}")
    parser.add_argument("--resource-pattern-type", default="literal")
    for line in script.splitlines():
        if not line.startswith("acl --"):
            continue
        given = parser.parse_args(shlex.split(line)[1:])
        kind = ResourceType.TOPIC if given.topic else ResourceType.GROUP
        pattern = ACLResourcePatternType[given.resource_pattern_type.upper()]
        resource = ResourcePattern(kind, given.topic or given.group, pattern)
        for operation in map(str.lower, given.operation):
            allow = ACLPermissionType.ALLOW
            yield ACL(given.allow_principal, "*", OPERATIONS[operation], allow, resource)

"""Why a record cannot be read if an agent's converter is not the one that is needed."""

from __future__ import annotations

import json

AGENTS = "at every agent, then run `reconcile sweep`"


def has_schema(part: str) -> str:
    """Why a key or value (``part``) with Kafka Connect's schema around it cannot be read."""
    return f"its {part} has a schema: set {part}.converter.schemas.enable=false {AGENTS}"


def is_binary(part: str) -> str:
    """Why a key or value that begins with a zero byte, as Avro does, cannot be read."""
    converter = "org.apache.kafka.connect.json.JsonConverter"
    return f"its {part} is Avro or the like, not JSON: set {part}.converter={converter} {AGENTS}"


def misread(part: str, data: bytes | None, member: str | None = None) -> str | None:
    """Why this key or value cannot be read; None if it is a JSON object with this member."""
    if data is None:
        return f"it has no {part}"
    if data[:1] == b"\0":
        return is_binary(part)
    try:
        told = json.loads(data)
    except ValueError:
        return f"its {part} is not JSON"
    if isinstance(told, dict) and {"schema", "payload"} <= told.keys():
        return has_schema(part)
    if not isinstance(told, dict) or (member is not None and member not in told):
        return f"its {part} has no {member}" if member else f"its {part} is no JSON object"
    return None

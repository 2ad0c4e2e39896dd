"""`findings --undo` records its own deletes in the lineage of the family, if it has one."""

from types import SimpleNamespace
from typing import Any

import pytest

from checkpoints.no_lineage import NoLineage
from streaming.commands.person import undo
from streaming.settings import Settings
from tests.fakes.checked_cluster import EVERYTHING, JAMES


def test_each_family_has_its_own_lineage_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the lineage of messages, the undo of a right or a reference failed."""
    lineages: dict[str, Any] = {}

    def row_undo(family: Any, _tables: object, _journal: object, lineage: Any, *_: object) -> None:
        lineages[family.name] = lineage

    nothing: Any = lambda *_args, **_named: None  # noqa: E731
    for name in ("connect", "compared", "CassandraPauses", "Tables", "_of_counters", "PauseWatch"):
        monkeypatch.setattr(undo, name, nothing)
    monkeypatch.setattr(undo, "schema_of", lambda *_: JAMES)
    monkeypatch.setattr(undo, "kept_tallies", lambda *_: ())
    monkeypatch.setattr(undo, "RowUndo", row_undo)
    monkeypatch.setattr(undo, "CassandraLineage", lambda _store, family: f"of {family.name}")
    own: Any = SimpleNamespace(store=None, journal=None, lineage="of message")
    orders: Any = SimpleNamespace(while_paused=True)
    undo.undo_desk(Settings.model_validate(EVERYTHING), own, orders)
    assert lineages.pop("message") == "of message"
    assert {"rights", "attachment", "attachment_reference"} <= lineages.keys()
    assert all(isinstance(each, NoLineage) for each in lineages.values())

"""`reconcile mailboxes` on real servers: every kind, a dry run, a fix that is killed, and users."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from reconcilers.words.exit_codes import ExitCode
from streaming.tables import canary_schema
from tests.endpoints import Endpoints
from tests.stack.boxes import Boxes
from tests.stack.sabotage import sabotage
from tests.stack.scenes import Answer
from tests.stack.streams import PATIENCE, until, write_settings

pytestmark = pytest.mark.stack

OFFLINE = ("--fix", "--confirm", "ALL-SERVICES-ARE-OFFLINE")
SENT = "after streaming.tables.mailbox_writer:MailboxWriter.send"
Changes = dict[str, dict[str, Any]]


KINDS = {
    "orphan_path": 2,
    "missing_path": 1,
    "path_mismatch": 1,
    "two_paths_of_one_id": 1,
    "swapped_paths": 1,
    "id_mismatch": 1,
    "two_ids_of_one_path": 1,
    "incomplete_row": 1,
}
UNNAMED: dict[str, str | None] = {"m": None}
MAILBOXES = UNNAMED | {"a": "INBOX", "c": "missing", "d": "before", "e": "one", "f": "g's"}
MAILBOXES |= {"g": "f's", "h": "wanted", "j": "shared", "k": "shared"}
PATHS = {"INBOX": "a", "orphan": "b", "after": "d", "one": "e", "other": "e", "f's": "f"}
PATHS |= {"g's": "g", "wanted": "i", "shared": "j", "with mail": "l"}
BY_PATH = (
    UNNAMED
    | {"a": "INBOX", "b": "orphan", "d": "after", "e": "one", "f": "f's", "g": "g's"}
    | {"h": "wanted", "i": "wanted", "j": "shared", "k": "shared", "l": "with mail"},
    PATHS,
)
BY_MAILBOX = (
    MAILBOXES,
    {"INBOX": "a", "missing": "c", "before": "d", "one": "e", "g's": "f", "f's": "g"}
    | {"wanted": "i", "shared": "j", "with mail": "l"},
)
MERGES = {"two_ids_of_one_path": "left", "incomplete_row": "left"}
UNFIXED = {
    "path": MERGES | {"two_paths_of_one_id": "left", "id_mismatch": "partly_fixed"},
    "mailbox": MERGES | {"orphan_path": "left", "id_mismatch": "left"},
}


def settings_of(folder: Path, stack: Endpoints, keyspace: str, right: str) -> Path:
    changes: Changes = {"mailboxes": {"right": right}, "stream": {"delay": 1, "window": 1}}
    return write_settings(folder / "reconcile.toml", stack, keyspace, "unused", changes)


def run(config: Path, *words: str, environment: Mapping[str, str] | None = None) -> Answer:
    """The command in a session of its own, which a sabotage may kill as a whole."""
    return subprocess.run(
        [sys.executable, "-m", "streaming.app", "mailboxes", *words, "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )


def objects(answer: Answer) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.stdout.splitlines()]


@pytest.mark.parametrize(("right", "after"), [("path", BY_PATH), ("mailbox", BY_MAILBOX)])
def test_each_kind_with_its_outcome_and_a_fix_that_is_killed(
    stack: Endpoints,
    cassandra: Session,
    fresh_keyspace: str,
    tmp_path: Path,
    right: str,
    after: tuple[dict[str, str | None], dict[str, str]],
) -> None:
    boxes = Boxes(cassandra, fresh_keyspace)
    boxes.plant()
    before = boxes.tables()
    assert before == boxes.expected(MAILBOXES, PATHS)
    config = settings_of(tmp_path, stack, fresh_keyspace, right)

    reported = run(config, "--format", "jsonl")
    assert reported.returncode == ExitCode.PROBLEMS, reported.stderr
    found = [each["kind"] for each in objects(reported)]
    assert {kind: found.count(kind) for kind in found} == KINDS
    dry = run(config, "--fix", "--dry-run", "--format", "jsonl")
    assert boxes.tables() == before
    planned = [cql for each in objects(dry) for cql in each["writes"]]

    done = tmp_path / "killed"
    killed = run(config, *OFFLINE, "--ignore-traffic", environment=sabotage(SENT, done))
    assert killed.returncode == -9, killed.stderr
    between = boxes.tables()
    assert between != before

    fixed = run(config, *OFFLINE, "--ignore-traffic", "--format", "jsonl")
    outcomes = objects(fixed)
    sent = [cql for each in outcomes for cql in each["writes"]]
    assert sent == planned[1:], "the first write was sent by the fix that was killed"
    assert boxes.tables() == boxes.expected(*after)
    unfixed = {each["kind"]: each["outcome"] for each in outcomes if each["outcome"] != "fixed"}
    assert unfixed == UNFIXED[right]
    right_side = 1 if right == "path" else 0
    assert boxes.tables()[right_side] == before[right_side]


@contextmanager
def canaries(config: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "streaming.app", "canary", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


@pytest.mark.long(part="commands")
def test_users_who_write_and_silent_agents_refuse_a_fix(
    stack: Endpoints, cassandra: Session, fresh_keyspace: str, tmp_path: Path
) -> None:
    boxes = Boxes(cassandra, fresh_keyspace)
    boxes.mailbox("a", "before")
    boxes.path("after", "a")
    own = f"reconciler_{uuid.uuid4().hex[:8]}"
    changes: Changes = {"mailboxes": {"right": "path"}, "stream": {"delay": 1, "window": 1}}
    unheard = changes | {"canary": {"keyspace": f"{own}_unheard"}}
    heard = changes | {"canary": {"keyspace": f"{own}_canary"}}  # the shared one is another's
    canary_schema.create(cassandra, f"{own}_canary")
    nobody = write_settings(tmp_path / "nobody.toml", stack, fresh_keyspace, own, unheard)
    config = write_settings(tmp_path / "reconcile.toml", stack, fresh_keyspace, own, heard)

    silent = run(nobody, *OFFLINE)
    assert silent.returncode == ExitCode.REFUSED
    assert "no canary of the last minute has come back from node " in silent.stderr

    def seen() -> bool:
        """Whatever was written first: one try may take longer than lies between two writes."""
        return " was written at " in run(config, *OFFLINE).stderr

    def fixed() -> bool:
        return run(config, *OFFLINE).returncode == 0

    with canaries(config):
        cassandra.execute(
            f"INSERT INTO {fresh_keyspace}.messageidtable (mailboxid, uid, modseq) VALUES"
            f" ({uuid.uuid1()}, 1, 1)"
        )
        until("the write is seen", seen)
        assert boxes.tables()[0] == {boxes.ids["a"]: "before"}
        until("a minute has passed", fixed)
    assert boxes.tables()[0] == {boxes.ids["a"]: "after"}
    for each in (own, f"{own}_canary"):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {each}")

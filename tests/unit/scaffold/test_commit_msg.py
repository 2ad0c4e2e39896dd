"""The commit-msg hook: what it refuses, what it lets through, and that git asks it."""

import os
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

HOOKS = Path(__file__).resolve().parents[3] / ".githooks"
CODE, TEST, PAGE = "streaming/app.py", "tests/unit/test_app.py", "README.md"

_loader = SourceFileLoader("commit_msg", str(HOOKS / "commit-msg"))
_spec = spec_from_loader("commit_msg", _loader)
assert _spec is not None
hook = module_from_spec(_spec)
_loader.exec_module(hook)


@pytest.mark.parametrize(
    ("message", "changed"),
    [
        ("Ask one function whether canaries are trustworthy", [PAGE]),
        ("Keep an incomplete truth row out of the projection\n\nIt would spread.", [CODE, TEST]),
        ("Embed Kafka in the tests", [TEST]),
        ("Mend a test\n# Please enter the commit message", [TEST]),
        ("Say " + "a" * 68, [CODE]),
        ("Merge branch 'a' into b; and more, and more", [CODE, TEST]),
    ],
)
def test_what_is_let_through(message: str, changed: list[str]) -> None:
    assert hook.faults(message, changed) == []


@pytest.mark.parametrize(
    ("message", "changed", "fault"),
    [
        ("", [], "the message is empty"),
        ("# only a comment", [], "the message is empty"),
        ("Say " + "a" * 69, [], "has 73 characters"),
        ("Mend a test.", [], "full stop"),
        ("Mend a test; mend another", [], "several changes"),
        ("Read again: topics, one question", [], "several changes"),
        ("mend a test", [], "capital letter"),
        ("Mended a test", [], "not in the imperative"),
        ("Mending a test", [], "not in the imperative"),
        ("The test is mended", [], "not in the imperative"),
        ("Mend a test\nat once", [], "second line"),
        ("Mend a defect", [CODE, TEST], "say why in a body"),
    ],
)
def test_what_is_refused(message: str, changed: list[str], fault: str) -> None:
    found = hook.faults(message, changed)
    assert any(fault in each for each in found), found


def test_git_asks_it(tmp_path: Path) -> None:
    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        line = ["git", *named, "-c", f"core.hooksPath={HOOKS}", *arguments]
        alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}  # no signing, no other hooks
        return subprocess.run(
            line, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False
        )

    git("init", "--quiet")
    (tmp_path / "page").write_text("a page")
    git("add", "page")
    refused = git("commit", "--quiet", "-m", "Added a page")
    assert refused.returncode != 0
    assert "not in the imperative: 'Added'" in refused.stderr
    assert git("commit", "--quiet", "-m", "Add a page").returncode == 0

"""The units of systemd: it accepts them, and what they start is a command of the product."""

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.monitoring.systemd import TICK
from streaming.settings import USUAL
from streaming.settings.work import OWN_FOLDER
from tests.wheel import NOBODY, ROOT, sealed

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
PLACE = "/opt/reconciler"
ENVIRONMENT = {"MODE": "observe"}
"""Of the unit itself: an operator's file may say repair."""
each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda each: each.stem)


def service(unit: Path) -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit, encoding="utf-8")
    return parser["Service"]


def command(unit: Path) -> list[str]:
    """The words of ExecStart, as systemd fills them in."""
    words = shlex.split(service(unit)["ExecStart"])
    filled = {f"${{{name}}}": value for name, value in ENVIRONMENT.items()}
    return [filled.get(each, each) for each in words]


def test_there_is_one_of_the_stream_and_one_of_its_canaries() -> None:
    assert [command(each)[1] for each in UNITS] == ["canary", "stream"]


def verified(unit: Path) -> list[str]:
    """What systemd has to say about a unit."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze on the PATH (Debian: apt-get install systemd)")
    asked = [program, "verify", "--man=no", str(unit)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if unit.name in line]


@each_unit
def test_systemd_accepts_it(unit: Path, tmp_path: Path) -> None:
    """With the environment of this run in the place of the installed one."""
    copy = tmp_path / unit.name
    text = unit.read_text("utf-8").replace(PLACE, sys.prefix)
    copy.write_text(text, encoding="utf-8")
    assert verified(copy) == []
    copy.write_text(text.replace("StateDirectory=", "StateFolder="), encoding="utf-8")
    (line,) = verified(copy)
    assert "StateFolder" in line


@each_unit
def test_its_command_parses_and_its_folders_are_those_of_the_product(unit: Path) -> None:
    program, *words = command(unit)
    assert program == f"{PLACE}/bin/reconcile"
    assert app.parsed(words).config is None, f"the settings are those of {USUAL}"
    told = service(unit)
    assert f"/var/lib/{told['StateDirectory']}" == told["WorkingDirectory"] == OWN_FOLDER
    assert told["RestartPreventExitStatus"] == str(int(ExitCode.USAGE))
    assert told["EnvironmentFile"] == f"-{USUAL.with_name('environment')}"


@each_unit
def test_it_is_ready_and_alive_when_it_says_so(unit: Path) -> None:
    """A start may last: it waits for its servers."""
    told = service(unit)
    assert (told["Type"], told["TimeoutStartSec"]) == ("notify", "infinity")
    assert int(told["WatchdogSec"]) >= 10 * TICK
    assert "AF_UNIX" in told["RestrictAddressFamilies"].split(), "the socket of its messages"


@each_unit
@pytest.mark.skipif(os.getuid() != 0, reason="only root may be another user")
def test_its_command_runs_as_its_user(unit: Path, tmp_path: Path) -> None:
    """Up to its settings: it ends with the code after which systemd does not start it again."""
    config = tmp_path / "reconcile.toml"
    config.write_text("[cassandra]\nport = 0\n", encoding="utf-8")
    words = [*sealed(NOBODY), sys.executable, "-m", "streaming.app", *command(unit)[1:]]
    given = {"RECONCILE_CONFIG": str(config), "PYTHONPATH": str(ROOT), **ENVIRONMENT}
    environment = {"PATH": os.environ["PATH"], **given}
    done = subprocess.run(
        words, cwd="/", env=environment, capture_output=True, text=True, check=False
    )
    told = "[cassandra] port is 0, and must be: whole number, > 0, < 65536"
    assert done.stderr == f"reconcile: {config}: {told}\n"
    assert str(done.returncode) == service(unit)["RestartPreventExitStatus"]

"""The units of systemd: it accepts them, and what they start is a command of the product."""

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template

import pytest

from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.monitoring.systemd import TICK
from streaming.settings import USUAL
from streaming.settings.work import OWN_FOLDER
from tests.wheel import NOBODY, ROOT, sealed

SYSTEMD = ROOT / "deploy" / "systemd"
UNITS = [SYSTEMD / f"{name}.service" for name in ("reconciler-canary", "reconciler")]
"""Of the product; those for nodes of Cassandra stand at the end."""
AGENT, SPACE = (SYSTEMD / f"reconciler-{name}.service" for name in ("agent", "cdc-space"))
TIMER = SPACE.with_suffix(".timer")
PLACE, PLACE_OF_AGENT = "/opt/reconciler", "/opt/reconciler-agent"
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


def installed(text: str) -> str:
    """A unit that runs what is here instead of what is installed."""
    here = text.replace(PLACE_OF_AGENT, str(ROOT / "deploy"))
    return here.replace(f"{PLACE}/", f"{sys.prefix}/")


@pytest.mark.parametrize(
    "unit", [*UNITS, AGENT, SPACE, TIMER], ids=lambda each: each.name.removeprefix("reconciler-")
)
def test_systemd_accepts_it(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    text = installed(unit.read_text("utf-8"))
    if unit == TIMER:
        (tmp_path / SPACE.name).write_text(installed(SPACE.read_text("utf-8")), encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    assert verified(copy) == []
    copy.write_text(text.replace("Description=", "Describes="), encoding="utf-8")
    (line,) = verified(copy)
    assert "Describes" in line


def test_every_unit_is_tried() -> None:
    assert sorted(SYSTEMD.iterdir()) == sorted([*UNITS, AGENT, SPACE, TIMER])


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


# --- on a node of Cassandra ----------------------------------------------------------------------


def test_an_agents_folders_are_the_defaults_of_its_script() -> None:
    told = service(AGENT)
    assert told["ExecStart"] == f"{PLACE_OF_AGENT}/agent/start.sh"
    work = f"/var/lib/{told['StateDirectory']}"
    assert told["WorkingDirectory"] == work
    script = (ROOT / "deploy" / "agent" / "start.sh").read_text("utf-8")
    assert f"AGENT_WORK:={work}" in script
    assert f"AGENT_CONFIG:={Path(told['EnvironmentFile']).parent}" in script


@pytest.mark.skipif(os.getuid() != 0, reason="only root may be another user")
def test_an_agent_without_its_settings_is_not_started_again() -> None:
    (start,) = shlex.split(installed(service(AGENT)["ExecStart"]))
    words = [*sealed(NOBODY), start]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == "start.sh: set KAFKA_BOOTSTRAP_SERVERS to host:port of Kafka\n"
    assert str(done.returncode) == service(AGENT)["RestartPreventExitStatus"]


def test_the_timer_writes_how_full_cdc_raw_is(tmp_path: Path) -> None:
    (tmp_path / "cdc_raw").mkdir()
    (tmp_path / "cdc_raw" / "segment.log").write_text("12345", encoding="utf-8")
    given = {
        "CDC_RAW": str(tmp_path / "cdc_raw"),
        "CDC_TOTAL_MIB": "64",
        "CDC_TEXTFILE": str(tmp_path / "cdc_raw.prom"),
    }
    text = SPACE.read_text("utf-8")
    for name in given:
        assert f"{name}=" in text, "its default"
    words = [Template(each).substitute(given) for each in shlex.split(service(SPACE)["ExecStart"])]
    subprocess.run([installed(each) for each in words], check=True)
    assert "reconciler_cdc_raw_bytes 5\n" in Path(given["CDC_TEXTFILE"]).read_text("utf-8")

"""What the containers run at start, run here in a folder, with a stand-in for the server."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from deploy.embedded.templates import render
from deploy.embedded.wait import HANG_S
from tests.containers.test_compose import compose

pytestmark = pytest.mark.containers

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
GIVEN_BY_SPARK = re.findall(
    r"\$(SPARK_\w+)", (DEPLOY / "spark" / "entrypoint.sh").read_text(encoding="utf-8")
)
NODE_TEMPLATES = ("cassandra/cassandra.yaml", "cassandra/cassandra-5.0.yaml")


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


def stand_in(folder: Path, name: str) -> str:
    """A PATH whose `name` prints its arguments, one a line, and as an error where it runs."""
    program = folder / "bin" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\npwd >&2\n', encoding="utf-8")
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def moved(script: Path, folder: Path, places: dict[str, Path]) -> Path:
    """A copy of `script` that uses other folders than the image's."""
    text = script.read_text(encoding="utf-8")
    for old, new in places.items():
        assert old in text
        new.mkdir(parents=True, exist_ok=True)
        text = text.replace(old, str(new))
    copy = folder / script.name
    copy.write_text(text, encoding="utf-8")
    return copy


def lay_out(folder: Path, names: tuple[str, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / Path(name).name).write_bytes((DEPLOY / name).read_bytes())


def test_the_node_starts_with_capture_on_and_lines_the_image_fills_in(tmp_path: Path) -> None:
    opt, etc = tmp_path / "opt", tmp_path / "etc"
    lay_out(opt, (*NODE_TEMPLATES, "render.sh"))
    (opt / "render.sh").chmod(0o755)
    places = {"/opt/reconciler": opt, "/etc/cassandra": etc, "/var/lib/cassandra": tmp_path / "lib"}
    entrypoint = moved(DEPLOY / "cassandra" / "entrypoint.sh", tmp_path, places)
    path = stand_in(tmp_path, "docker-entrypoint.sh")
    done = run(["bash", str(entrypoint), "cassandra", "-f"], {"PATH": path})
    assert (done.returncode, done.stdout) == (0, "cassandra\n-f\n"), done.stderr
    text = (etc / "cassandra.yaml").read_text("utf-8")
    agents = compose()["services"]["agent"]["environment"]["CASSANDRA_YAML"]
    assert (etc / "cassandra.yaml").readlink() == Path(
        agents.replace("/var/lib/cassandra", str(tmp_path / "lib"))
    ), "where the agent reads it"
    node = yaml.safe_load(text)
    assert (node["cdc_enabled"], node["native_transport_port"]) == (True, 9042)
    for line in ("listen_address", "rpc_address", "broadcast_rpc_address", "- seeds"):
        assert re.search(rf"^(# )?\s*{line}:", text, re.MULTILINE), line


def test_both_renderers_give_the_same(tmp_path: Path) -> None:
    template = tmp_path / "template"
    template.write_text("# comment\na=${one}/${two}${one}\nb=${none}\n  c: [x]\n", "utf-8")
    values = {"one": "1 & 2", "two": "a/b\\c", "none": ""}
    done = run(["bash", str(DEPLOY / "render.sh"), str(template)], values)
    mine = render(template, tmp_path / "out", **values).read_text("utf-8")
    assert done.stdout.rstrip("\n") == mine.rstrip("\n")


def test_a_name_without_a_value_is_an_error(tmp_path: Path) -> None:
    template = tmp_path / "template"
    template.write_text("a=${missing}\n", "utf-8")
    done = run(["bash", str(DEPLOY / "render.sh"), str(template)], {})
    assert done.returncode == 1
    assert "no value for ${missing}" in done.stderr


@contextmanager
def answering(status: int) -> Iterator[int]:
    """The port of a server that answers every request with `status`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_agent_is_healthy_when_it_says_so(status: int, healthy: bool) -> None:
    with answering(status) as port:
        done = run(["bash", str(DEPLOY / "agent" / "healthy.sh"), str(port)], {})
    assert (done.returncode == 0) is healthy


def test_an_agent_that_does_not_listen_is_not_healthy() -> None:
    with answering(200) as port:
        pass
    assert run(["bash", str(DEPLOY / "agent" / "healthy.sh"), str(port)], {}).returncode != 0


@pytest.mark.parametrize("word", ["executor", "driver"])
def test_what_spark_starts_gets_a_name_for_its_user_id(tmp_path: Path, word: str) -> None:
    """As OpenShift runs containers; a name that is there is left alone."""
    assert preloaded(tmp_path, "bob", word) == ["preload=", "passwd="]
    preload, passwd = preloaded(tmp_path, "", word)
    assert preload == "preload=libnss_wrapper.so"
    assert Path(passwd.partition("=")[2]).read_text().startswith("reconciler:x:2000123456:0:")


def test_a_command_needs_no_name(tmp_path: Path) -> None:
    assert preloaded(tmp_path, "", "stream") == ["preload=", "passwd="]


def preloaded(folder: Path, name: str, word: str) -> list[str]:
    """What the entrypoint sets before it starts a program, as a user of this name."""
    shown = 'echo "preload=${LD_PRELOAD:-}" "passwd=${NSS_WRAPPER_PASSWD:-}"'
    programs = {
        **dict.fromkeys(("reconcile", "java", "spark-submit"), shown),
        "getent": f"test -n '{name}'",
        "id": "if [ $1 = -u ]; then echo 2000123456; else echo 0; fi",
    }
    for program, told in programs.items():
        stand_in(folder, program)
        (folder / "bin" / program).write_text(f"#!/bin/sh\n{told}\n", encoding="utf-8")
    given = {
        **dict.fromkeys(GIVEN_BY_SPARK, "0"),
        **dict.fromkeys(("TMPDIR", "SPARK_HOME", "SPARK_LOCAL_DIRS"), str(folder)),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
    }
    return run([str(DEPLOY / "spark/entrypoint.sh"), word], given).stdout.split()

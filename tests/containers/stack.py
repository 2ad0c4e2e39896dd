"""The stack of docker-compose.yml for tests: same endpoints as the embedded one, on free ports."""

import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import docker
from docker.errors import DockerException
from testcontainers.compose import DockerCompose

from tests.endpoints import Endpoints, Running

ROOT = Path(__file__).resolve().parents[2]
KEYSPACE = "apache_james"
TOPIC_PREFIX = "james"
READY_SECONDS = 300


def missing_docker() -> str | None:
    """Why containers cannot run here, None when they can. A client alone is not enough."""
    try:
        client = docker.from_env(timeout=5)
    except DockerException as error:
        return f"no Docker daemon: {error}"
    try:
        client.ping()
    except DockerException as error:
        return f"the Docker daemon does not answer: {error}"
    finally:
        client.close()
    program = shutil.which("docker")
    if program is None:
        return "no docker command on the PATH"
    answer = subprocess.run([program, "compose", "version"], capture_output=True, check=False)
    return None if answer.returncode == 0 else "docker has no compose plugin"


@contextmanager
def running_containers(data: Path) -> Iterator[Running]:
    """Start what the reconciler needs, wait for the agent, remove everything at the end.

    Raises TimeoutError when the agent is not healthy after `READY_SECONDS`.
    """
    with ExitStack() as held:
        cassandra_port, kafka_port, agent_port = (_free_port(held) for _ in range(3))
    environment = data / "compose.env"
    environment.write_text(
        f"COMPOSE_PROJECT_NAME=reconcile-{uuid.uuid4().hex[:8]}\n"
        f"PORT_OF_CASSANDRA={cassandra_port}\n"
        f"PORT_OF_KAFKA={kafka_port}\n"
        f"PORT_OF_AGENT={agent_port}\n",
        encoding="utf-8",
    )
    endpoints = Endpoints(
        cassandra_host="127.0.0.1",
        cassandra_port=cassandra_port,
        bootstrap_servers=f"127.0.0.1:{kafka_port}",
        agent_http=f"http://127.0.0.1:{agent_port}",
        topic_prefix=TOPIC_PREFIX,
        keyspace=KEYSPACE,
        config=data / "reconcile.toml",
    )
    compose = DockerCompose(
        ROOT, build=True, wait=False, env_file=str(environment), services=["agent"]
    )
    endpoints.config.write_text(settings_for(endpoints, data), encoding="utf-8")
    with compose:
        _wait_for_agent(endpoints.agent_http)
        yield Running(endpoints, lambda: _restart_agent(compose, endpoints))


def settings_for(endpoints: Endpoints, data: Path) -> str:
    """The same settings as deploy/reconcile.toml, seen from outside the containers."""
    return (
        f'[cassandra]\nhosts = ["{endpoints.cassandra_host}"]\nport = {endpoints.cassandra_port}\n'
        f'keyspace = "{endpoints.keyspace}"\n'
        f'[kafka]\nbootstrap_servers = "{endpoints.bootstrap_servers}"\n'
        f'topic_prefix = "{endpoints.topic_prefix}"\n'
        f'[stream]\ncheckpoint_dir = "{data / "checkpoint"}"\n'
    )


def _free_port(held: ExitStack) -> int:
    """A port nobody listens at; `held` keeps it taken until all have been chosen."""
    listener = held.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    return port


def _restart_agent(compose: DockerCompose, endpoints: Endpoints) -> None:
    command = [*compose.compose_command_property, "restart", "agent"]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    _wait_for_agent(endpoints.agent_http)


def _wait_for_agent(http: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            with urlopen(f"{http}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(1)
    raise TimeoutError(f"the agent at {http} is not healthy after {READY_SECONDS} s")

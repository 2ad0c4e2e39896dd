"""The Docker variant, as far as it can be checked without a Docker daemon."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from deploy import wake_tables
from streaming import app, settings
from streaming.settings import MetricsSettings
from tests.containers import stack as containers
from tests.endpoints import Endpoints

pytestmark = pytest.mark.containers

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILES = sorted(DEPLOY.glob("*/Dockerfile"))
MADE = re.compile(r"install -d -o reconciler -g reconciler ((?:/\S+\s*)+)")
SERVICES = {
    "cassandra",
    "kafka",
    "prepare",
    "agent",
    "reconciler",
    "canary",
    "prometheus",
    "grafana",
}


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    return loaded


def version_in_pom(name: str) -> str:
    pom = ElementTree.parse(DEPLOY / "maven" / "pom.xml")
    found = pom.findtext(f".//{{*}}properties/{{*}}{name}")
    assert found, f"no property {name} in the pom"
    return found


def instructions(dockerfile: Path, name: str) -> list[str]:
    """Those of a name, with base images that are arguments filled in."""
    text = dockerfile.read_text(encoding="utf-8").replace("\\\n", " ")
    for argument, default in re.findall(r"^ARG (\w+_BASE)=(\S+)$", text, re.MULTILINE):
        text = text.replace(f"${{{argument}}}", default)
    return [line.split(None, 1)[1] for line in text.splitlines() if line.startswith(f"{name} ")]


def test_docker_compose_accepts_the_file() -> None:
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("no docker-compose on the PATH (Debian: apt-get install docker-compose)")
    done = subprocess.run(
        [program, "--file", str(ROOT / "docker-compose.yml"), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_services_are_there_and_the_name_is_left_to_the_folder() -> None:
    file = compose()
    assert set(file["services"]) == SERVICES
    assert "name" not in file


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_a_service_is_built_here_or_has_a_pinned_image(service: str) -> None:
    definition = compose()["services"][service]
    if "build" in definition:
        assert (ROOT / definition["build"]["dockerfile"]).is_file()
    else:
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", definition["image"])


def test_every_mounted_file_and_volume_exists() -> None:
    file = compose()
    for name, service in file["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            known = (
                (ROOT / source).exists() if source.startswith(".") else source in file["volumes"]
            )
            assert known, f"{name} mounts {source}"


def test_ports_are_open_to_this_machine_only() -> None:
    for service in compose()["services"].values():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_the_agent_starts_after_the_tables_and_the_reconciler_after_the_agent() -> None:
    services = compose()["services"]
    assert services["agent"]["depends_on"] == {
        "prepare": {"condition": "service_completed_successfully"}
    }
    assert services["reconciler"]["depends_on"]["agent"] == {"condition": "service_healthy"}


def test_the_agent_shares_the_nodes_disk() -> None:
    services = compose()["services"]
    disk = "cassandra:/var/lib/cassandra"
    assert disk in services["cassandra"]["volumes"]
    assert disk in services["agent"]["volumes"]


def test_images_have_the_versions_of_the_pom() -> None:
    [cassandra] = instructions(DEPLOY / "cassandra" / "Dockerfile", "FROM")
    assert cassandra == f"cassandra:{version_in_pom('cassandra50.version')}"
    kafka = compose()["services"]["kafka"]["image"]
    assert kafka == f"apache/kafka:{version_in_pom('kafka.version')}"
    assert f"pyspark=={version_in_pom('spark.version')}" in (ROOT / "requirements.lock").read_text(
        "utf-8"
    )


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
def test_a_dockerfile_pins_its_images_and_does_not_end_as_root(dockerfile: Path) -> None:
    images = [image.split(" ") for image in instructions(dockerfile, "FROM")]
    parts = {image[-1] for image in images if "AS" in image}
    for image in images:
        name, _, tag = image[0].partition(":")
        assert image[0] in parts or re.match(r"\d", tag), f"{name} is not pinned"
    assert instructions(dockerfile, "USER")[-1] not in {"root", "0", "0:0"}
    assert instructions(dockerfile, "HEALTHCHECK")
    assert instructions(dockerfile, "ENTRYPOINT")[-1].startswith("[")


def test_the_image_has_the_product_and_only_its_preparation_more() -> None:
    text = (DEPLOY / "spark" / "Dockerfile").read_text("utf-8")
    *_, before, prepare, last = re.split(r"^FROM ", text, flags=re.MULTILINE)
    assert last == "product\n", "what a build without a target makes"
    assert "COPY deploy /" not in before
    assert prepare.startswith("product AS prepare\n")
    services = compose()["services"]
    assert services["prepare"]["build"]["target"] == "prepare"
    assert "target" not in services["reconciler"]["build"]
    assert f'"{services["prepare"]["volumes"][0].split(":")[1]}"' in prepare


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
def test_what_a_dockerfile_copies_is_there_and_not_ignored(dockerfile: Path) -> None:
    sent = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for copy in instructions(dockerfile, "COPY"):
        words = [word for word in copy.split() if not word.startswith("--chmod")]
        if words[0].startswith("--from"):
            continue
        for source in words[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source.split('/')[0]}" in sent, source


def test_the_agent_is_built_with_the_newest_connector() -> None:
    arguments = instructions(DEPLOY / "agent" / "Dockerfile", "ARG")
    newest = dict(each.split("=") for each in arguments)["AGENT_VERSION"]
    pinned = version_in_pom("agent5.version")
    assert [int(n) for n in newest.split(".")[:3]] >= [int(n) for n in pinned.split(".")[:3]]
    assert newest in compose()["services"]["agent"]["build"]["args"]["AGENT_VERSION"]


def test_the_settings_file_is_accepted_and_says_what_compose_says() -> None:
    read = settings.load(DEPLOY / "reconcile.toml", {})
    services = compose()["services"]
    agent = services["agent"]["environment"]
    assert read.kafka.topic_prefix == agent["TOPIC_PREFIX"]
    assert read.kafka.bootstrap_servers == agent["KAFKA_BOOTSTRAP_SERVERS"]
    assert list(read.cassandra.hosts) == [agent["CASSANDRA_HOST"]]
    assert services["reconciler"]["ports"][0].endswith(f":{read.metrics.port}")
    assert (read.cassandra.keyspace, read.kafka.topic_prefix) == (
        containers.KEYSPACE,
        containers.TOPIC_PREFIX,
    )


def test_the_settings_of_the_kubernetes_example_are_accepted(tmp_path: Path) -> None:
    text = (DEPLOY / "kubernetes" / "reconciler.yaml").read_text("utf-8")
    config, *deployments = yaml.safe_load_all(text)
    assert config["kind"] == "ConfigMap"
    file = tmp_path / "reconcile.toml"
    file.write_text(config["data"]["reconcile.toml"], encoding="utf-8")
    read = settings.load(file, {})
    containers = [each["spec"]["template"]["spec"]["containers"][0] for each in deployments]
    assert [each["args"][0] for each in containers] == ["stream", "canary"]
    ports = [each["ports"][0]["containerPort"] for each in containers]
    assert ports == [read.metrics.port, read.metrics.canary_port]
    for each in containers:
        assert app.parsed(each["args"]).config is None
        names = {variable["name"]: "x" for variable in each["env"]}
        assert settings.load(file, names).cassandra.username == "x"


def test_kubernetes_asks_each_process_whether_it_is_alive_and_ready() -> None:
    """Metrics are served before a process has begun, and after its threads hang."""
    text = (DEPLOY / "kubernetes" / "reconciler.yaml").read_text("utf-8")
    _, *deployments = yaml.safe_load_all(text)
    for each in deployments:
        (container,) = each["spec"]["template"]["spec"]["containers"]
        probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness")]
        assert probes == [{"path": path, "port": "metrics"} for path in ("/livez", "/readyz")]


def test_the_patch_for_k8ssandra_names_settings_that_there_are() -> None:
    patch = yaml.safe_load((DEPLOY / "kubernetes" / "k8ssandra.yaml").read_text("utf-8"))
    told = patch["spec"]["cassandra"]
    node = yaml.safe_load((DEPLOY / "cassandra" / "cassandra.yaml").read_text("utf-8"))
    assert told["config"]["cassandraYaml"].keys() <= node.keys()
    for name in ("cdc_enabled", "cdc_block_writes", "commitlog_sync_period"):
        assert told["config"]["cassandraYaml"][name] == node[name]
    own, agent = told["containers"]
    assert own == {"name": "cassandra"}, "as the operator makes it"
    script = (DEPLOY / "agent" / "start.sh").read_text("utf-8")
    for variable in agent["env"]:
        assert re.search(rf"\b{variable['name']}\b", script), variable["name"]


def test_temporary_files_lie_in_a_folder_that_the_image_makes_for_its_user() -> None:
    """Below the working directory its user may make none; a volume would keep what is left."""
    image = DEPLOY / "spark" / "Dockerfile"
    kubernetes = (DEPLOY / "kubernetes" / "reconciler.yaml").read_text("utf-8")
    (example, *_) = yaml.safe_load_all(kubernetes)
    made = [each for run in instructions(image, "RUN") for each in MADE.findall(run)]
    for text in (
        (DEPLOY / "reconcile.toml").read_text("utf-8"),
        example["data"]["reconcile.toml"],
    ):
        folder = tomllib.loads(text)["stream"].get("temp_dir")
        assert folder in " ".join(made).split()
        assert folder not in instructions(image, "VOLUME")


def test_the_settings_of_the_containers_seen_from_outside_are_accepted(tmp_path: Path) -> None:
    endpoints = Endpoints(
        cassandra_host="127.0.0.1",
        cassandra_port=19042,
        bootstrap_servers="127.0.0.1:19092",
        agent_http="http://127.0.0.1:18000",
        topic_prefix="james",
        keyspace="apache_james",
        config=tmp_path / "reconcile.toml",
    )
    endpoints.config.write_text(containers.settings_for(endpoints, tmp_path), encoding="utf-8")
    read = settings.load(endpoints.config, {})
    assert (read.cassandra.port, read.kafka.bootstrap_servers) == (19042, "127.0.0.1:19092")


def test_the_pages_are_scraped_where_the_reconciler_listens() -> None:
    port = tomllib.loads((DEPLOY / "reconcile.toml").read_text("utf-8"))["metrics"]["port"]
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8"))
    jobs = {job["job_name"]: job["static_configs"] for job in scraped["scrape_configs"]}
    assert jobs == {
        "reconciler": [{"targets": [f"reconciler:{port}"]}],
        "reconciler-canary": [{"targets": [f"canary:{MetricsSettings().canary_port}"]}],
    }


def test_canaries_are_written_beside_the_stream_and_by_their_own_process() -> None:
    services = compose()["services"]
    assert services["canary"]["command"] == ["canary"]
    assert services["canary"]["build"] == services["reconciler"]["build"]
    assert f":{MetricsSettings().canary_port}/" in " ".join(
        services["canary"]["healthcheck"]["test"]
    )
    assert "reconciler" not in services["canary"]["depends_on"], "it goes on without the stream"


def test_all_tables_that_prepare_makes_can_be_captured() -> None:
    from deploy.mailserver import james

    assert {*wake_tables.TABLES} == {*james.cdc_tables()}

"""What a Spark cluster needs of the settings: refused, each in one line, before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from reconcilers.words.errors import Misconfigured
from streaming.settings.model import Settings

INTERPRETER = "spark.pyspark.python"


def refuse_unfit_cluster(settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
    """Raise `Misconfigured`, in one line, if executors on other hosts could not work so."""
    for wrong in _unfit(settings, environment):
        raise Misconfigured(f"not on {settings.stream.master}: {wrong}")


def costs_on_cluster(settings: Settings) -> Iterator[str]:
    """What the settings cost on a cluster, a line each, where an operator has accepted it."""
    stream = settings.stream
    alone = stream.checkpoint_shared is False and _is_of_one_host(stream.checkpoint_dir)
    if alone and not is_one_host(stream.master):
        yield (
            f"stream.checkpoint_dir {stream.checkpoint_dir} is not shared: when an executor is"
            f" lost, changes that wait, wait again for {stream.delay + stream.window:g} s (D + W)"
        )


def _unfit(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    stream, options = settings.stream, dict(settings.spark)
    if stream.is_local:
        return
    if not (environment.get("PYSPARK_PYTHON") or options.get(INTERPRETER)):
        yield f"set PYSPARK_PYTHON or {INTERPRETER}: the executors' Python, with our packages"
    if settings.kafka.logs_in and settings.kafka.password_file is not None:
        yield (
            "kafka.password_file is read on this host only: set RECONCILE_KAFKA__PASSWORD on each"
            " host instead"
        )
    if is_one_host(stream.master):
        return
    yield from _loopback(settings)
    if stream.checkpoint_shared is None and _is_of_one_host(stream.checkpoint_dir):
        yield (
            f"stream.checkpoint_dir {stream.checkpoint_dir} is no URI of a shared file system: give"
            " one, or set stream.checkpoint_shared (docs/cluster.md)"
        )
    if stream.master.startswith("spark://") and options.get("spark.authenticate") != "true":
        yield (
            "spark.authenticate is not true: whoever reaches the driver's port can run code that"
            " reads James's Cassandra"
        )


def _loopback(settings: Settings) -> Iterator[str]:
    brokers = settings.kafka.bootstrap_servers.split(",")
    for name, hosts in (
        ("cassandra.hosts", settings.cassandra.hosts),
        ("kafka.bootstrap_servers", [each.rpartition(":")[0] or each for each in brokers]),
    ):
        for host in hosts:
            if is_loopback(host):
                yield f"{name} has {host}: each executor would ask its own host"


def is_loopback(host: str) -> bool:
    """Whether this name or address means the host that uses it."""
    plain = host.strip().strip("[]").lower()
    try:
        address = ip_address(plain)
    except ValueError:
        return plain == "localhost" or plain.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def is_one_host(master: str) -> bool:
    """Whether all executors run on this host: a local master, or one that only it can reach."""
    if master.startswith("local"):
        return True
    hosts = master.removeprefix("spark://").split(",")
    return master.startswith("spark://") and all(
        is_loopback(each.rpartition(":")[0]) for each in hosts
    )


def _is_of_one_host(folder: str) -> bool:
    """Whether a folder of this name may be another one on each host."""
    return "://" not in folder or folder.startswith("file:")

"""What Spark needs on this host: its Kafka connector and Java.

It is checked before a lease is taken.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from pathlib import Path

from reconcilers.words.errors import Misconfigured
from streaming.pipeline.connector import installed
from streaming.pipeline.jvm import FILES, is_nameless
from streaming.settings import Settings, costs_on_cluster, refuse_unfit_cluster

log = logging.getLogger("reconciler")

PACKAGES = "spark.jars.packages"
OLDEST = 17
"""The first version of Java that runs Spark 4."""
PATIENCE = 60.0
"""Seconds for an answer of Java's, which takes one on a machine that is not busy."""


def refuse_without_spark(settings: Settings) -> None:
    """Raise `Misconfigured` unless Spark can start here, and work on its cluster, if it has one."""
    refuse_unfit_cluster(settings)
    for cost in costs_on_cluster(settings):
        log.warning("%s", cost)
    if not brings_jars(settings):
        connector_jars(settings)
    _refuse_files_of_nameless_user(settings)
    _refuse_other_java()


def brings_jars(settings: Settings) -> bool:
    """Whether ``[spark]`` says where Spark finds its Kafka connector."""
    return bool(dict(settings.spark).keys() & {"spark.jars", PACKAGES})


def connector_jars(settings: Settings) -> list[str]:
    """The jars of Spark's Kafka connector. Raises `Misconfigured` if they are missing."""
    return installed(settings.stream.jars)


def _refuse_files_of_nameless_user(settings: Settings) -> None:
    """To fetch what ``[spark]`` names, Hadoop logs in as the user of the process, by name."""
    named = dict(settings.spark).keys() & {*FILES, PACKAGES}
    if named and is_nameless():
        raise Misconfigured(
            f"Spark needs a user with a name for {min(named)}, and user id {os.getuid()} has none:"
            " add it to /etc/passwd, or preload libnss_wrapper.so"
        )


def _refuse_other_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    where = f"JAVA_HOME is {home}" if home else "JAVA_HOME is not set, so PATH is searched"
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=PATIENCE, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise Misconfigured(f"Spark needs Java {OLDEST} or newer: {failed} ({where})") from failed
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < OLDEST:
        version = told.partition("\n")[0].strip() or "no version"
        raise Misconfigured(f"Spark needs Java {OLDEST} or newer: {java} says {version} ({where})")

"""``reconcile jars``: fetches the jars with which Spark reads Kafka, or lists them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from streaming.pipeline.connector import FOLDER, JARS, fetch
from streaming.settings import Settings

OPTIONS = ("spark.jars.repositories", "spark.jars.ivySettings", "spark.driver.extraJavaOptions")
"""Options of ``[spark]`` that say from where, and through which proxy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile jars [--list]``."""
    told = "print name, Maven coordinates and SHA-256 of each, to fetch them by other means"
    parser.add_argument("--list", action="store_true", help=told)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Fetch what is missing, or list all; returns 0. Raises `Misconfigured`, `Unreachable`."""
    folder = settings.stream.jars or FOLDER
    if arguments.list:
        for each in JARS:
            print(f"{each.name}  {each.coordinates}  {each.sha256}")
        return 0
    for each in fetch(folder, _options(dict(settings.spark))):
        print(f"fetched {each.name}", flush=True)
    print(f"{folder} has the {len(JARS)} jars that Spark needs for Kafka")
    return 0


def _options(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name in OPTIONS}

"""Under `spark-submit` the JVM runs already: what only its start can take must have been given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkConf

from reconcilers.words.errors import Misconfigured
from streaming.pipeline.jvm import refuse_without_files

GIVEN = {"spark.submit.pyFiles": "code.zip", "spark.jars": "kafka.jar"}


def gateway(properties: dict[str, str]) -> Any:
    system = SimpleNamespace(getProperty=properties.get)
    return SimpleNamespace(
        jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
    )


def conf(options: dict[str, str]) -> SparkConf:
    made = SparkConf(loadDefaults=False, _jconf=None)
    return made.setAll(list(options.items()))


def test_what_was_given_is_enough() -> None:
    refuse_without_files(gateway(GIVEN), conf(GIVEN))
    refuse_without_files(gateway({}), conf({"spark.cores.max": "2"}))


@pytest.mark.parametrize(
    ("name", "told"),
    [("spark.submit.pyFiles", "--py-files code.zip"), ("spark.jars", "--jars kafka.jar")],
)
def test_what_is_missing_is_one_line(name: str, told: str) -> None:
    there = {key: value for key, value in GIVEN.items() if key != name}
    with pytest.raises(Misconfigured, match=f"spark-submit was started without {told}"):
        refuse_without_files(gateway(there), conf(GIVEN))

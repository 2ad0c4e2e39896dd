"""Spark without servers, set up as the product's is where the plans depend on it."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark(quick_spark: None) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").appName("tests")
    builder = builder.config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()

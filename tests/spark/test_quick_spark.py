"""The classes that `make setup` keeps: a real JVM of Spark maps them, whatever it runs."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deploy.quick_spark import CLASSES


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
@pytest.mark.skipif(not CLASSES.exists(), reason="no classes are kept: `make setup` says why")
def test_spark_starts_with_the_classes_that_are_kept(spark: SparkSession) -> None:
    assert spark._jvm is not None
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    assert str(CLASSES.resolve()) in Path(f"/proc/{pid}/maps").read_text()

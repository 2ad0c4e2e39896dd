"""Spark where the name of the host means no address, as while podman builds an image."""

import os

import pytest

from deploy.embedded.jars import folder
from tests.spark.scripts import run_script

NAMELESS = """
    import ctypes, socket, sys
    from pathlib import Path

    CLONE_NEWUTS = 0x04000000  # another host name for this process and its children
    assert ctypes.CDLL(None).unshare(CLONE_NEWUTS) == 0
    socket.sethostname("host.invalid")
    jars = Path(sys.argv[1])
"""
FETCH = """
    from tempfile import TemporaryFile
    from pyspark import SparkConf
    from streaming.pipeline.connector import _gateway

    with TemporaryFile() as output, _gateway(SparkConf(), output) as gateway:
        print(gateway.jvm.java.lang.Math.abs(-5))
"""
SESSION = """
    from streaming.pipeline.session import spark_session
    from streaming.settings import Settings

    settings = Settings.model_validate({"stream": {"master": "local[1]", "jars": jars}})
    print(spark_session(settings).range(5).count())
"""

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root may rename the host")


def test_a_session_starts() -> None:
    done = run_script(NAMELESS + SESSION, folder("spark"))
    assert done.stdout.split() == ["5"], done.stderr


def test_the_jvm_that_fetches_jars_starts() -> None:
    done = run_script(NAMELESS + FETCH, folder("spark"))
    assert done.stdout.split() == ["5"], done.stderr

"""What is an argument of Spark's JVM: every user of the host can read it."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest
from pyspark import SparkConf

from streaming.pipeline import jvm

OPEN = {"spark.authenticate": "true", "spark.cores.max": "8"}
SECRETS = {
    "spark.authenticate.secret": "guess",
    "spark.executorEnv.RECONCILE_CASSANDRA__PASSWORD": "guess",
    "spark.hadoop.fs.s3a.access.key": "guess",
    "spark.kubernetes.authenticate.oauthToken": "guess",
    "spark.ssl.keyPassword": "guess",
}


def test_no_secret_is_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = MagicMock()
    monkeypatch.setattr(jvm, "launch_gateway", launch)
    conf = SparkConf(loadDefaults=False).setAll([*OPEN.items(), *SECRETS.items()])
    jvm.launch_jvm(conf)
    assert dict(launch.call_args.args[0].getAll()) == OPEN
    assert dict(conf.getAll()) == OPEN | SECRETS, "the session still gets them"

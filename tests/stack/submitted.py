"""A driver under `spark-submit` that starts the product's session, and says what it has."""

import json
import sys
from pathlib import Path

from reconcilers.words.errors import Misconfigured
from streaming.pipeline.session import spark_session
from streaming.pipeline.spark_state import RunningSpark
from streaming.settings import load
from tests.stack.spark_looks import places


def said(settings_file: Path) -> dict[str, object]:
    """Where executors have our code from, who they are, and whether Spark can read Kafka."""
    spark = spark_session(load(settings_file, {}))
    seen = spark.sparkContext.parallelize(range(2), 2).mapPartitions(places).collect()
    kafka = spark.read.format("kafka").option("kafka.bootstrap.servers", "nowhere:1")
    told = {
        "whole project": any(whole for whole, _, _ in seen),
        "code": sorted({ours for _, ours, _ in seen}),
        "hosts": sorted(each.host for each in RunningSpark(spark).executors()),
        "kafka": kafka.option("subscribe", "any").load().columns[:2],
        "scheduler": spark.sparkContext.getConf().get("spark.scheduler.mode"),
    }
    spark.stop()
    return told


if __name__ == "__main__":
    try:
        print(json.dumps(said(Path(sys.argv[1]))))
    except Misconfigured as wrong:
        print(json.dumps(str(wrong)))

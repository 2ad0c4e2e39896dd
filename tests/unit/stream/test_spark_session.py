"""One Spark context in a process, also where two threads need it at once, as with `--settle`."""

from __future__ import annotations

from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from py4j.protocol import Py4JJavaError

from reconcilers.words.errors import Misconfigured, ReconcilerError, SparkDied, Unreachable
from streaming.pipeline import session
from streaming.pipeline.spark_errors import spark_there
from streaming.settings import Settings, StreamSettings


class Context:
    """Starts while another thread asks for a session."""

    _active_spark_context: ClassVar[Any] = None
    began: ClassVar[list[Context]] = []
    asks: ClassVar[list[Thread]] = []

    def __init__(self, **_: object) -> None:
        self.began.append(self)
        if len(self.began) == 1:
            self.asks[0].start()
            self.asks[0].join(0.2)  # it has begun a second one by then, or waits for this one
        type(self)._active_spark_context = self


def test_two_threads_start_one_context(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = SimpleNamespace(config=lambda **_: SimpleNamespace(getOrCreate=object))
    monkeypatch.setattr(session, "SparkContext", Context)
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setattr(session, "launch_jvm", lambda _conf: None)
    monkeypatch.setattr(session, "options_of", lambda _settings: {})
    monkeypatch.setattr(session, "_set_environment", lambda _settings: None)
    other = Thread(target=session.spark_session, args=(Settings(),))
    Context.asks.append(other)
    session.spark_session(Settings())
    other.join()
    assert len(Context.began) == 1


# --- why Spark does not start, or has ended

STOPPED = "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis"
WRONG = "java.lang.IllegalArgumentException: spark.network.timeoutInterval should be less"
FORBIDDEN = "io.fabric8.kubernetes.client.KubernetesClientException: Forbidden"


class JavaError(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """An error of the JVM, without one."""

    def __init__(self, told: str) -> None:
        Exception.__init__(self, told)
        self.java_exception = self.told = told

    def __str__(self) -> str:
        return self.told


@pytest.mark.parametrize(
    ("master", "told", "error", "says"),
    [
        ("local[2]", WRONG, Misconfigured, "Spark does not start: .* should be less"),
        ("spark://m:7077", WRONG, Misconfigured, "Spark does not start: .* should be less"),
        ("spark://m:7077", STOPPED, Unreachable, "Spark's master spark://m:7077: it does not ans"),
        ("k8s://https://m", FORBIDDEN, Unreachable, "Spark's master k8s://https://m: .*Forbidden"),
    ],
)
def test_why_spark_does_not_start_is_one_line(
    master: str, told: str, error: type[ReconcilerError], says: str
) -> None:
    with (
        pytest.raises(error, match=says) as failed,
        session._taken_by(StreamSettings(master=master)),
    ):
        raise JavaError(told)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("told", [STOPPED, "IllegalStateException: LiveListenerBus is stopped."])
def test_an_application_that_its_master_ends_is_a_spark_that_died(told: str) -> None:
    with pytest.raises(SparkDied, match="Spark's master has ended the application"), spark_there():
        raise JavaError(told)
    with pytest.raises(Py4JJavaError), spark_there():
        raise JavaError(WRONG)

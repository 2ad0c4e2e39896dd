"""One Spark context in a process, also where two threads need it at once, as with `--settle`."""

from __future__ import annotations

from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from streaming.pipeline import session


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
    other = Thread(target=session.spark_session, args=(None,))
    Context.asks.append(other)
    session.spark_session(None)  # type: ignore[arg-type]
    other.join()
    assert len(Context.began) == 1

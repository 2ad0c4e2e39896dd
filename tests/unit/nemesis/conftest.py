"""Nobody waits between the retries of the mail server."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="package", autouse=True)
def _no_pauses() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for module in ("counter_statements", "projection"):
            time = SimpleNamespace(sleep=lambda _: None)
            patched.setattr(f"deploy.mailserver.{module}.time", time)
        yield

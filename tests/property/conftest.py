"""What several modules of property tests ask for."""

import pytest

from tests.property.stories import Story


@pytest.fixture
def run() -> Story:
    """A mailbox in which nothing has happened yet."""
    return Story()

"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Undo what a test has configured of the logs: a command sets their level for its process."""
    yield
    structlog.reset_defaults()

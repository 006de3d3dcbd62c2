"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names of tests that hold an address: each process of `make test` has another one."""
    if unstable := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give ids= to {unstable[0]}: processes must name tests alike")


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Undo what a test has configured of the logs: a command sets their level for its process."""
    yield
    structlog.reset_defaults()

"""What holds for every test."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

# On a busy machine, an example may take any time.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names of tests that hold an address: each process of `make test` has another one."""
    if unstable := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give ids= to {unstable[0]}: processes must name tests alike")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Spare the collector of garbage what lives to the end: all tests, and what they import.

    While they are gathered, nothing is garbage, and the collector took a third of the time.  Later,
    a ``gc.collect()`` of ours took 0.2 s to go through these 300,000 objects.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def browser_driver() -> Iterator[Any]:
    """What starts browsers; a process can have one."""
    from playwright.sync_api import sync_playwright  # only started for the tests in a browser

    with sync_playwright() as driver:
        yield driver


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """Undo what a test has configured of the logs: a command sets their level for its process."""
    yield
    structlog.reset_defaults()

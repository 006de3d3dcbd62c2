"""The vendor of the tests of realtime models."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bargein.fakes import FakeOpenAIRealtime


@pytest.fixture
async def vendor() -> AsyncIterator[FakeOpenAIRealtime]:
    """Return a vendor that has nothing to say yet."""
    async with FakeOpenAIRealtime().open() as vendor:
        yield vendor

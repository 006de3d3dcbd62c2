"""A server without a file descriptor to spare waits, says why, and goes on."""

import errno

import pytest
import trio
from structlog.testing import capture_logs

from bargein import App, Call
from bargein.client import open_caller
from bargein.server import open_server
from tests.memory_listener import MemoryListener


class Full(MemoryListener):
    """A listener whose process has no descriptor left for a while."""

    def __init__(self, failures: list[int]) -> None:
        super().__init__()
        self.failures = failures

    async def accept(self):
        if self.failures:
            await trio.lowlevel.checkpoint()
            raise OSError(self.failures.pop(), "no room")
        return await super().accept()


async def answer(call: Call) -> None:
    """Say nothing."""


async def test_a_server_without_descriptors_goes_on(autojump_clock):
    """It tries again ten times a second, logs a line a minute with advice, and no traceback."""
    with capture_logs() as logs:
        listener = Full([errno.EMFILE] * 700)  # for 70 s
        async with open_server(App(answer), listeners=[listener]) as server:
            await trio.sleep(71)
            async with open_caller(server.url, stream=await listener.dial(), mode="text") as caller:
                assert caller.hello
    lines = [line for line in logs if line["event"] == "no_room_for_connections"]
    assert [line["error"] for line in lines] == ["EMFILE", "EMFILE"]
    assert "ulimit -n" in lines[0]["advice"]


async def test_another_failure_ends_the_server(autojump_clock):
    """A listener that is broken is no matter of patience."""
    with pytest.raises(BaseExceptionGroup) as caught:
        async with open_server(App(answer), listeners=[Full([errno.EBADF])]):
            await trio.sleep(1)
    assert caught.group_contains(OSError, match="no room")

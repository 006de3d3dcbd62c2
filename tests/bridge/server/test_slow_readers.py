"""A client for which too much waits loses its call, and learns why."""

from typing import Literal

import trio
from structlog.testing import capture_logs

from bargein import Call, Event
from bargein.events import UserTranscriptionReceived
from bargein.protocol import TextInput, encode
from bargein.websocket import ConnectionClosedError
from tests.bridge.server.dropping_lines import dialed


class Blob(Event):
    """Much at once."""

    type: Literal["blob"] = "blob"
    data: str


async def answer(call: Call) -> None:
    """Send more in one step than may wait."""

    def flood(message):
        for _ in range(25):
            call.publish(Blob(data="x" * 50_000), source="flood")

    call.bridge(name="flood").on(UserTranscriptionReceived).map(flood)


async def test_who_reads_too_slowly_is_told_so(serving, autojump_clock):
    """The connection closes with 1008, not with the 1000 of a call that is over."""
    with capture_logs() as logs:
        async with serving(answer) as place:
            async with dialed(place) as line:
                await line.send(encode(TextInput(text="more")))
                with trio.fail_after(20):
                    try:
                        while True:
                            await line.receive()
                    except ConnectionClosedError:
                        pass
                assert line.connection.close_code == 1008
            await trio.sleep(30)
            assert place.server.metrics.calls["disconnected"] == 1
    [told] = [line for line in logs if line["event"] == "client_reads_too_slowly"]
    assert told["waiting"] > 10

"""No log line of any library, at any level, has a token, a header or what greetings a call."""

import io
import json
import logging

import pytest
import structlog
import trio

from bargein.cli import configure_logs
from bargein.client import CallRefusedError
from bargein.server import sign_token
from bargein.websocket import open_websocket

SECRET = "secret-" + "s3cr3t-of-the-signer-0123456789"
METRICS = "metrics-t0ken-0123456789"
VENDOR_KEY = "key-of-a-vendor-0123456789"


async def echo(call):
    call.on("user.transcription_received").map(lambda event: event.content).broadcast()


@pytest.fixture
def written():
    """Everything that is logged through logging and structlog, at DEBUG, texts and all."""
    out = io.StringIO()
    config = structlog.get_config()
    root = logging.getLogger()
    loggers = [root, *(logging.getLogger(name) for name in list(root.manager.loggerDict))]
    levels = [logger.level for logger in loggers]
    handlers = root.handlers[:]
    configure_logs("debug", pii=True, out=out)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    root.handlers[:] = [*handlers, logging.StreamHandler(out)]
    yield out
    root.handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    structlog.configure(**config)


@pytest.mark.proof
async def test_a_call_logs_no_secret(serving, written):
    """A call that is refused, talks, is lost and resumed, and fails, at DEBUG of every library."""
    token = sign_token(SECRET, user="ada", lasts_s=600)
    greetings = []
    async with serving(echo, token_secret=SECRET, metrics_token=METRICS) as place:
        for wrong in ("a-wrong-t0ken-0123456789", token + "x"):
            with pytest.raises(CallRefusedError):
                async with place.call(mode="text", token=wrong):
                    pass
        for path, bearer in (
            (f"/ws?mode=text&token={token}", token),
            (f"/ws?mode=bad&token={token}x", METRICS),
            (f"/{token}", METRICS),
        ):
            with trio.move_on_after(5):
                try:
                    stream = await place.listener.dial()
                    headers = {"Authorization": f"Bearer {bearer}", "api-key": VENDOR_KEY}
                    async with open_websocket(
                        f"ws://localhost{path}", headers=headers, stream=stream
                    ) as websocket:
                        greetings.append(await websocket.receive())
                except (ConnectionError, ValueError):
                    pass
        async with place.call(mode="text", token=token, redials=True) as caller:
            caller.write("hello")
            await trio.sleep(0.1)
            place.cut()
            await trio.sleep(3)
    lines = written.getvalue()
    assert "call" in lines
    [hello] = [json.loads(text) for text in greetings]
    assert hello["resume"]
    for secret in (
        SECRET,
        METRICS,
        VENDOR_KEY,
        token,
        token.split(".")[-1],
        "a-wrong-t0ken",
        hello["resume"],
    ):
        assert secret not in lines
    for name in ("Authorization", "Sec-WebSocket", "?mode="):
        assert name not in lines

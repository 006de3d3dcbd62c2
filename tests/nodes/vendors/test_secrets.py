"""No log line of any library, error, traceback or ``repr`` shows a key."""

from __future__ import annotations

import logging
import traceback
from contextlib import suppress
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from bargein.fakes import FakeOpenAIRealtime, FakeOpenAIVoice, Fault
from bargein.realtime import OpenAIRealtime
from bargein.speech import VoiceStyle
from bargein.vendors import VendorError, open_session
from bargein.voices import OpenAIVoice

from ... import providers

SECRETS = {
    "api_key": "s3cr3t-of-the-key",
    "headers": {"x-gateway": "s3cr3t-of-a-header"},
    "query": {"token": "s3cr3t-of-the-query"},
}
REFUSED = Fault("refuse", status=401)


async def use_ear(name: str, fault: Fault | None) -> Any:
    make, fake = providers.EARS[name]
    async with fake(fault=fault).open() as vendor:
        ear = make(base_url="ws://fake", dial=vendor.dial, **SECRETS)
        async with ear.open_stream() as stream:
            with trio.move_on_after(2):
                await stream.send(b"\1\0" * 16_000)
                await stream.receive()
    return ear


async def use_voice(name: str, fault: Fault | None) -> Any:
    make, fake = providers.VOICES[name]
    async with fake(fault=fault).open() as vendor:
        voice = make(base_url="ws://fake", dial=vendor.dial, **SECRETS)
        async with voice.open():
            await say(voice)
    return voice


async def use_http_voice(name: str, fault: Fault | None) -> Any:
    async with FakeOpenAIVoice(fault=fault).open() as endpoint:
        voice = OpenAIVoice(base_url="http://fake/v1", transport=endpoint.transport(), **SECRETS)
        async with voice.open():
            await say(voice)
    return voice


async def say(voice: Any) -> None:
    async with voice.open_context(VoiceStyle()) as context:
        await context.send("Hello there.")
        await context.flush()
        with trio.move_on_after(2):
            await context.receive()


async def use_model(name: str, fault: Fault | None) -> Any:
    make, fake = providers.MODELS[name]
    async with fake(fault=fault).open() as endpoint:
        model = make("any", base_url="http://fake", transport=endpoint.transport(), **SECRETS)
        async with model.open():
            await model.prewarm()
            _ = [piece async for piece in model.stream([{"role": "user", "content": "hello"}])]
    return model


async def use_realtime(name: str, fault: Fault | None) -> Any:
    async with FakeOpenAIRealtime("Hello.", words="Hello.", fault=fault).open() as vendor:
        model = OpenAIRealtime(base_url="ws://fake/v1", dial=vendor.dial, **SECRETS)
        async with open_session(model.address, model.limits, dial=model.dial) as session:
            with trio.move_on_after(2):
                await session.receive()
    return model


USES: dict[str, Any] = {
    **dict.fromkeys(providers.EARS, use_ear),
    **dict.fromkeys(providers.VOICES, use_voice),
    **dict.fromkeys(providers.MODELS, use_model),
    "OpenAIVoice": use_http_voice,
    "OpenAIRealtime": use_realtime,
}


@pytest.mark.parametrize("fault", [None, REFUSED], ids=["works", "refused"])
@pytest.mark.parametrize("name", USES)
async def test_no_key_is_shown(
    name: str, fault: Fault | None, autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys, own headers and queries stand in no log at any level, and in no error or ``repr``."""
    caplog.set_level(logging.DEBUG)
    shown = ""
    with capture_logs() as ours:
        try:
            shown += repr(await USES[name](name, fault))
        except BaseException as error:  # noqa: BLE001 (its text is read)
            shown += "".join(traceback.format_exception(error)) + repr(error)
            with suppress(AttributeError):
                shown += error.safe_text  # type: ignore[attr-defined]
            assert fault is not None, shown
    shown += caplog.text + repr(ours) + "".join(repr(vars(line)) for line in caplog.records)
    assert "s3cr3t" not in shown


async def test_a_server_of_ones_own_in_no_log(
    autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The address of a session is shown without its query, whatever becomes of it."""
    caplog.set_level(logging.DEBUG)

    async def nobody() -> trio.abc.Stream:
        raise OSError("nobody is there")

    make, _ = providers.EARS["DeepgramFlux"]
    ear = make(base_url="ws://me:s3cr3t@fake?key=s3cr3t", dial=nobody, api_key="s3cr3t-key")
    with pytest.raises(VendorError) as told:
        async with ear.open_stream() as stream:
            await stream.receive()
    assert "s3cr3t" not in repr(ear) + str(told.value) + caplog.text

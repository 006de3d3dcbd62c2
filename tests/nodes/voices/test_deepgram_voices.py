"""Deepgram's voices, each against a fake that speaks the vendor's messages, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from bargein.events import AgentSpeechCut, UserStartedSpeaking, UserStoppedSpeaking
from bargein.speech import SpeechNotOpenError, SpeechPiece, TextSaid, VoiceStyle
from bargein.vendors import SessionLimits, VendorError
from bargein.voices import DeepgramVoice
from bargein.websocket import WebSocket

from .test_voices import BYTES_PER_S, CHAR_S, WORDS, Vendor, receive_all, speaking


class FakeDeepgram(Vendor):
    """Says the text up to each flush, in binary messages without a name."""

    is_flux = True
    refuses_flushes = False

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__(nursery)
        self._said: dict[WebSocket, str] = {}
        self._turn: dict[WebSocket, trio.Lock] = {}
        self.speaks: WebSocket | None = None

    @property
    def said(self) -> list[dict[str, Any]]:
        """All messages of the lines over which something was said; a spare says only goodbye."""
        spoken = (line for line in self.lines if any(m["type"] == "Speak" for m in line))
        return [message for line in spoken for message in line]

    def cut_line(self) -> None:
        """Lose the line that speaks."""
        assert self.speaks is not None
        self.speaks.connection.cut("gone")

    async def _answer(self, socket: WebSocket, message: dict[str, Any]) -> None:
        if message["type"] == "Speak":
            self.speaks = socket
            self._said[socket] = self._said.get(socket, "") + message["text"]
        elif message["type"] == "Flush":
            text, self._said[socket] = self._said.get(socket, ""), ""
            if self.refuses_flushes:
                warning = {"type": "Warning", "code": "EXCESSIVE_FLUSH", "description": "Flush"}
                await socket.send(json.dumps(warning))
                return
            if self.is_flux:
                await socket.send(json.dumps({"type": "Flushed", "speech_id": "dg_sp_1"}))
            async with self._turn.setdefault(socket, trio.Lock()):
                await self._say(socket, text)

    async def _say(self, socket: WebSocket, text: str) -> None:
        if self.is_flux:
            await socket.send(json.dumps({"type": "SpeechStarted", "speech_id": "dg_sp_1"}))
        for number, _ in enumerate(text):
            await trio.sleep(CHAR_S / 10)
            while self.is_stalled:
                await trio.sleep_forever()
            odd = 1 if number % 2 == 0 else -1
            if number == len(text) - 1 and number % 2 == 0:
                odd = 0
            await socket.send(bytes(round(CHAR_S * BYTES_PER_S) + odd))
        done = {"type": "SpeechMetadata", "speech_id": "dg_sp_1", "audio_duration_ms": 1}
        flushed = {"type": "Flushed", "sequence_id": 0}
        await socket.send(json.dumps(done if self.is_flux else flushed))


@pytest.fixture(params=["flux-haley-en", "aura-2-thalia-en"])
def place(request: pytest.FixtureRequest, nursery: trio.Nursery) -> Iterator[tuple[Any, Any]]:
    """Give each voice, and the fake that it asks."""
    vendor = FakeDeepgram(nursery)
    vendor.is_flux = request.param.startswith("flux")
    limits = SessionLimits(attempts=2)
    voice = DeepgramVoice(
        request.param, api_key="s3cret", url="ws://fake", dial=vendor.dial, limits=limits
    )
    yield voice, vendor
    nursery.cancel_scope.cancel()


async def say(voice: Any, *texts: str, style: VoiceStyle | None = None) -> tuple[float, int]:
    """Say texts, each with a flush; return how much audio came, and the answered flushes."""
    async with voice.open_context(style or VoiceStyle()) as context:
        for text in texts:
            await context.send(text)
            await context.flush()
        await context.end()
        audio_s, _, flushes = await receive_all(context)
    return audio_s, flushes


async def test_text_in_pieces_becomes_audio(autojump_clock, place):
    """All text is said, each flush is answered, and the key is in the header alone."""
    voice, vendor = place
    async with voice.open():
        assert await say(voice, "One large latte. ", "Anything else?") == (
            pytest.approx(31 * CHAR_S, abs=0.001),
            2,
        )
    path = "/v2/speak" if vendor.is_flux else "/v1/speak"
    assert vendor.paths[0].startswith(f"{path}?model=")
    assert "encoding=linear16&sample_rate=24000" in vendor.paths[0]
    assert vendor.headers[0]["Authorization"] == "Token s3cret"
    assert "s3cret" not in repr(voice)
    assert vendor.said[0] == {"type": "Speak", "text": "One large latte. "}


async def test_an_utterance_leaves_its_socket_to_the_next(autojump_clock, place):
    """Utterances one after the other share two sockets; those at once have one each."""
    voice, vendor = place
    async with voice.open():
        for _ in range(10):
            await say(voice, "Hello.")
        assert len(vendor.lines) <= 2
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(say, voice, "Hello.")
        assert 4 <= len(vendor.lines) <= 6


async def test_a_cut_closes_its_socket(autojump_clock, place):
    """The vendor is told to stop, and none of the late audio is taken for another utterance's."""
    voice, vendor = place
    async with voice.open():
        async with voice.open_context(VoiceStyle()) as context:
            await context.send("One large latte with oat milk and a muffin.")
            await context.flush()
            assert isinstance(await context.receive(), SpeechPiece)
        assert await say(voice, "Two.") == (pytest.approx(4 * CHAR_S), 1)
        await trio.sleep(0.5)
    stops = [
        m["type"] for line in vendor.lines for m in line if m["type"] in ("Clear", "Interrupt")
    ]
    assert stops == ["Interrupt" if vendor.is_flux else "Clear"]


async def test_few_flushes_wait_at_once(autojump_clock, place):
    """Aura is flushed seldom, as it takes 20 a minute; all clauses are answered all the same."""
    voice, vendor = place
    async with voice.open():
        audio_s, flushes = await say(voice, *["Yes. "] * 30)
    assert audio_s == pytest.approx(150 * CHAR_S)
    assert flushes == 30
    sent = sum(m["type"] == "Flush" for m in vendor.said)
    assert sent == 30 if vendor.is_flux else sent <= 4


async def test_a_flush_that_is_refused_fails_the_utterance(autojump_clock, place):
    """A warning that a flush is not processed is no reason to wait for ever."""
    voice, vendor = place
    vendor.refuses_flushes = True
    if vendor.is_flux:
        return  # it has no limit
    async with voice.open():
        with pytest.raises(VendorError, match="EXCESSIVE_FLUSH"):
            await say(voice, "Hello.")


async def test_an_error_fails_the_utterance_alone(autojump_clock, place):
    """What the vendor refuses is an error with its code, and the next utterance works."""
    voice, vendor = place
    async with voice.open():
        vendor.is_stalled = True
        async with voice.open_context(VoiceStyle()) as context:
            await context.send("Hello.")
            await context.flush()
            await trio.sleep(0.1)
            error = {"type": "Error", "code": "DATA-0002", "description": "no"}
            await vendor.speaks.send(json.dumps(error))
            with pytest.raises(VendorError, match="DATA-0002"):
                await receive_all(context)
        vendor.is_stalled = False
        assert (await say(voice, "Hello."))[1] == 1


async def test_garbage_is_left_out(autojump_clock, place):
    """Messages that nobody can read cost nothing."""
    voice, vendor = place
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        await trio.sleep(0.1)
        for garbage in ("", "no json", "[]", "{}", '{"type": 7}'):
            for socket in vendor.sockets:
                await socket.send(garbage)
        await context.send("Hello.")
        await context.flush()
        await context.end()
        assert (await receive_all(context))[0] == pytest.approx(6 * CHAR_S)


async def test_a_line_that_breaks_before_the_first_sound_costs_nothing(autojump_clock, place):
    """What nothing was heard of is asked for again on the next line."""
    voice, vendor = place
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        vendor.is_stalled = True
        await context.send("Hello there.")
        await context.flush()
        await context.end()
        await trio.sleep(1)
        vendor.is_stalled = False
        vendor.cut_line()
        audio_s, _, flushes = await receive_all(context)
    assert (audio_s, flushes) == (pytest.approx(12 * CHAR_S), 1)


async def test_a_line_that_breaks_in_mid_utterance_is_an_error(autojump_clock, place):
    """What was half said fails: nobody knows what is missing.  The next utterance works."""
    voice, vendor = place
    async with voice.open():
        async with voice.open_context(VoiceStyle()) as context:
            await context.send("Hello there.")
            await context.flush()
            assert not isinstance(await context.receive(), TextSaid)
            vendor.cut_line()
            with pytest.raises(VendorError, match="in mid-utterance"):
                await receive_all(context)
        assert (await say(voice, "Again."))[1] == 1


async def test_the_style_is_in_the_address(autojump_clock, place):
    """Another voice or speed is said over a socket of its own."""
    voice, vendor = place
    async with voice.open():
        await say(voice, "Hello.")
        other = "flux-leo-en" if vendor.is_flux else "aura-2-leo-en"
        await say(voice, "Hello.", style=VoiceStyle(voice=other, speed=1.2))
    assert any(f"model={other}" in path and "speed=1.2" in path for path in vendor.paths)


async def test_a_voice_that_is_not_open_says_so(autojump_clock, place):
    """A context of a voice that nobody opened is an error that tells what to do."""
    voice, _ = place
    with pytest.raises(SpeechNotOpenError, match="async with"):
        async with voice.open_context(VoiceStyle()):
            pass


@pytest.mark.parametrize("left_s", [0.0, 0.005, 0.01, 0.02, 0.1, 0.3, 1.0])
async def test_leaving_at_any_moment_leaves_nothing(autojump_clock, place, left_s):
    """Wherever an utterance is left, the next one is said whole, and only its own audio is."""
    voice, _ = place
    async with voice.open():
        with trio.move_on_after(left_s):
            await say(voice, "One large latte ", "with oat milk.")
        assert await say(voice, "Two.") == (pytest.approx(4 * CHAR_S), 1)


# --- in a call ------------------------------------------------------------------------------------


async def test_a_call_hears_every_word(autojump_clock, place):
    """What the caller hears is the text to the letter."""
    voice, _ = place
    async with speaking(voice, WORDS) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "".join(WORDS)


@pytest.mark.parametrize("cut_s", [0.1, 0.5, 1.0, 1.6])
async def test_a_barge_in_is_known_to_the_clause(autojump_clock, place, cut_s):
    """A cut ends the vendor's work in the same step; what was heard is a prefix of the text."""
    voice, vendor = place
    async with speaking(voice, WORDS * 20) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(cut_s)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(0.1)
        for cut in caller.events(AgentSpeechCut):
            assert ("".join(WORDS) * 20).startswith(cut.heard)
        sent = len(vendor.said)
        await trio.sleep(5)
        assert len(vendor.said) == sent
        await caller.quiet()

"""Vendors whose messages are not JSON: the address says how they are read."""

from __future__ import annotations

import json

import trio

from bargein.ears import VendorEar
from bargein.fakes import FakeDeepgramAura, FakeDeepgramFlux
from bargein.speech import SpeechPiece, TextSaid, TurnOver, VoiceStyle
from bargein.vendors import VendorAddress
from bargein.voices import VendorVoice

KEY = {"Authorization": "Token k"}
SOUND = (b"\x00\x10" * 16 + b"\x00\xf0" * 16) * 500


def framed(message) -> bytes:
    """A message as a frame: a byte that says what it is, then audio or JSON."""
    return b"A" + message if isinstance(message, bytes) else b"J" + json.dumps(message).encode()


def parse(data):
    """What such a frame holds."""
    if data[:1] not in (b"A", b"J"):
        raise ValueError("no frame")
    return data[1:] if data[:1] == b"A" else json.loads(data[1:])


def in_frames(fake):
    class Framed(fake):
        async def give(self, line, message, at):
            await line.say(b"?")  # what nothing can read is skipped
            await super().give(line, framed(message), at)

    return Framed


class EarCodec:
    piece_s = 0.1

    def audio(self, pcm):
        return pcm

    def end_turn(self):
        return None

    def restart(self):
        pass

    def facts(self, message):
        if message.get("event") == "EndOfTurn":
            yield TurnOver(message["transcript"])


class VoiceCodec:
    def text(self, text):
        return (json.dumps({"type": "Speak", "text": text}),)

    def flush(self):
        return ('{"type": "Flush"}',)

    def end(self):
        return ()

    def cancel(self):
        return ()

    def pieces(self, message):
        if message["type"] == "Flushed":
            yield TextSaid()


async def test_an_ear_reads_frames(autojump_clock):
    """Words in binary frames are heard, and what is no frame is skipped."""
    async with in_frames(FakeDeepgramFlux)("a latte").open() as vendor:
        address = VendorAddress(vendor="Acme", url="ws://fake/v2/listen", headers=KEY, parse=parse)
        ear = VendorEar(address, EarCodec, dial=vendor.dial)
        async with ear.open_stream() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(stream.send, SOUND + bytes(32_000))
            with trio.fail_after(9):
                while not isinstance(fact := await stream.receive(), TurnOver):
                    pass
            nursery.cancel_scope.cancel()
    assert fact.text == "a latte"


async def test_a_voice_reads_frames(autojump_clock):
    """Audio and messages in binary frames are told apart by the address."""
    async with in_frames(FakeDeepgramAura)().open() as vendor:
        address = VendorAddress(vendor="Acme", url="ws://fake/v1/speak", headers=KEY, parse=parse)
        voice = VendorVoice(
            address,
            lambda context, style: VoiceCodec(),
            None,
            sample_rate_hz=24_000,
            times="none",
            dial=vendor.dial,
        )
        audio = 0
        async with voice.open(), voice.open_context(VoiceStyle()) as said:
            await said.send("Two lattes.")
            await said.flush()
            await said.end()
            with trio.fail_after(30):
                while (piece := await said.receive()) is not None:
                    audio += len(piece.pcm) if isinstance(piece, SpeechPiece) else 0
    assert audio == 2 * 24_000 * 12 // 20

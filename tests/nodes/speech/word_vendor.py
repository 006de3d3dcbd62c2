"""A vendor of ears that writes down the words of the sound that it gets, and hangs on demand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from bargein.ears import VendorEar
from bargein.fakes import FakeLine, FakeVendor
from bargein.speech import EarFact, TurnOver, WordsHeard
from bargein.vendors import SessionLimits, VendorAddress

from .failing import RATE_HZ, WORD_S, words_of

PAUSE_S = 0.6
"""The silence that ends a turn at the vendor, in seconds."""


class WordVendor(FakeVendor):
    """Recognises the words of `sound_of`; each connection is a line.

    Attributes:
        hangs_after: How many words the lines report before they send nothing more, line by line.
        heard: The words that each line got, whether or not it reported them.
    """

    def __init__(self, *hangs_after: float, ends_turns: bool = True) -> None:
        super().__init__()
        self.hangs_after = hangs_after
        self.heard: list[list[str]] = []
        self._ends_turns = ends_turns
        self._line: FakeLine | None = None

    def cut_line(self) -> None:
        """Break the newest connection."""
        assert self._line is not None
        self._line.cut()

    async def talk(self, line: FakeLine) -> None:
        self._line, hangs_after = line, math.inf
        if len(self.heard) < len(self.hangs_after):
            hangs_after = self.hangs_after[len(self.heard)]
        heard: list[str] = []
        self.heard.append(heard)
        pcm, silence_s, reported, told = b"", 0.0, 0, ""
        while True:
            data = await line.receive()
            is_forced = isinstance(data, str)
            if isinstance(data, bytes):
                silence_s = 0.0 if any(data) else silence_s + len(data) / 2 / RATE_HZ
                pcm += data if any(data) or (pcm and silence_s < WORD_S) else b""
            words = []
            if isinstance(data, bytes) and any(data):
                words = [word for word in words_of(pcm) if not word.endswith("-")]
            if len(words) > len(told.split()):
                heard += words[len(told.split()) :]
                told = " ".join(words)
                reported += 1
                if reported <= hangs_after:
                    await line.say({"words": told, "final": not self._ends_turns})
            if pcm and (is_forced or (silence_s >= PAUSE_S and self._ends_turns)):
                if told and reported < hangs_after:
                    await line.say({"over": told})
                pcm, told = b"", ""


class WordCodec:
    piece_s = 0.04

    def audio(self, pcm: bytes) -> bytes:
        return pcm

    def end_turn(self) -> str:
        return json.dumps("end")

    def restart(self) -> None:
        pass

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        if "over" in message:
            yield TurnOver(message["over"])
        else:
            yield WordsHeard(message["words"], final=message["final"])


def ear_at(vendor: WordVendor, **limits: Any) -> VendorEar:
    """Return an ear whose lines lead to a vendor."""
    address = VendorAddress(vendor="Words", url="ws://fake")
    return VendorEar(address, WordCodec, limits=SessionLimits(**limits), dial=vendor.dial)

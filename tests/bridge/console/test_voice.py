"""A call through the microphone and the loudspeaker of the machine."""

from __future__ import annotations

import threading
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import trio

from bargein import App, Call
from bargein.bridge.console import VoiceError, VoiceExtraError
from bargein.bridge.console._audio_transport import MachineVoice
from bargein.bridge.console._lines import Line
from bargein.bridge.console._session import Session
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentResponse,
    AgentSpeechCut,
    AgentStartedSpeaking,
    AgentTextComplete,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)

PATIENCE_S = 30.0


class PortAudioError(Exception):
    """What the library raises."""


class Stream:
    """A stream whose thread calls back every 20 ms, as the library's does."""

    def __init__(self, library: SoundDevice, kind: str, **options: object) -> None:
        self.kind, self.options, self._library = kind, options, library
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        library.streams.append(self)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._library.closed.append(self.kind)

    def _run(self) -> None:
        size = self.options["blocksize"]
        times = SimpleNamespace(outputBufferDacTime=10.03, currentTime=10.0)
        while not self._stop.wait(0.02):
            data = bytearray(2 * size)
            if self.kind == "input":
                data[:] = self._library.microphone(2 * size)
            began_s = time.perf_counter()
            self.options["callback"](memoryview(data), size, times, None)
            if self.kind == "output":
                self._library.heard.append((began_s, bytes(data)))


class SoundDevice:
    """The part of the library ``sounddevice`` that is used, with a thread for each stream."""

    PortAudioError = PortAudioError

    def __init__(self, missing: str = "", refuses: str = "") -> None:
        self.streams: list[Stream] = []
        self.closed: list[str] = []
        self.heard: list[tuple[float, bytes]] = []
        self._missing, self._refuses = missing, refuses

    def is_silent_since(self, since_s: float) -> bool:
        """Whether all blocks are silent but the first that began then, in which the sound fades."""
        return not any(any(pcm) for _, pcm in self.since(since_s)[1:])

    def since(self, since_s: float) -> list[tuple[float, bytes]]:
        """Return what was rendered since then, from the first block that began then."""
        return [(at_s, pcm) for at_s, pcm in self.heard if at_s > since_s]

    def microphone(self, size: int) -> bytes:
        return b"\x01\x00" * (size // 2)

    def query_devices(self, kind: str) -> dict:
        if kind == self._missing:
            raise PortAudioError(f"Error querying device -1 ({kind})")
        return {"name": "some device"}

    def RawInputStream(self, **options: object) -> Stream:
        return self._stream("input", options)

    def RawOutputStream(self, **options: object) -> Stream:
        return self._stream("output", options)

    def _stream(self, kind: str, options: dict) -> Stream:
        if kind == self._refuses:
            raise PortAudioError("Invalid sample rate [PaErrorCode -9997]")
        return Stream(self, kind, **options)


class Hum:
    """A voice that hums each word for a quarter of a second."""

    @asynccontextmanager
    async def open(self):
        yield

    def attach(self, call: Call) -> None:
        def say(message):
            said = call.speaking.utterance_of(message)
            words = message.event.content.split() if said else []
            hum = b"\x00\x10" * 6_000
            return iter([AgentAudio(hum, 24_000, f"{w} ", utterance=said.number) for w in words])

        bridge = call.bridge(name="voice", is_agent=False)
        bridge.on(AgentResponse).map(say).broadcast()
        bridge.on(AgentTextComplete).map(self.finish).broadcast()

    def finish(self, message):
        return AgentAudioComplete(utterance=message.event.utterance)


class Shown:
    """A display that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def show(self, line: Line) -> None:
        self.lines.append(line)

    def write(self, text: str) -> None:
        self.lines.append(Line(text))

    def end(self) -> None:
        pass

    def refresh(self) -> None:
        pass


frames: list[int] = []


async def answer(call: Call) -> None:
    """Say something long, and take note of what the microphone brings."""
    bridge = call.bridge(name="speaker")

    async def speak(message):
        yield AgentResponse(content="One two three four five six seven eight nine ten eleven.")

    route = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
    route.stream(speak).broadcast()
    ear = call.bridge(name="counter", is_agent=False)
    ear.on(UserAudio, overlap="concurrent").map(
        lambda message: frames.append(len(message.event.pcm))
    )


async def until(holds) -> None:
    """Wait until something holds."""
    with trio.fail_after(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  # another thread makes it hold
            await trio.sleep(0.01)


async def test_a_call_by_voice():
    """The microphone reaches the call, the voice the loudspeaker, and a cancel silences it."""
    frames.clear()
    library, events = SoundDevice(), []
    session = Session(App(answer, speech=Hum()), voice=MachineVoice(library))
    async with session.open(lambda message: events.append(message.event), Shown()) as (call, _):
        await until(lambda: len(frames) >= 5)
        assert set(frames) == {640}
        call.publish(UserStartedSpeaking())
        call.publish(UserStoppedSpeaking())
        await until(lambda: any(isinstance(event, AgentStartedSpeaking) for event in events))
        await until(lambda: any(any(pcm) for _, pcm in library.heard))
        await trio.sleep(0.6)
        call.handle.cancel()
        cut_s = time.perf_counter()
        await until(lambda: any(isinstance(event, AgentSpeechCut) for event in events))
        await until(lambda: len(library.since(cut_s)) > 10)
        assert library.is_silent_since(cut_s)
        [cut] = [event for event in events if isinstance(event, AgentSpeechCut)]
        assert cut.basis in ("reported", "words")
        assert cut.heard
        assert cut.unheard
    assert sorted(library.closed) == ["input", "output"]


async def test_a_hold_and_a_release():
    """A hold silences the loudspeaker at once, and a release goes on where it stopped."""
    library = SoundDevice()
    session = Session(App(answer, speech=Hum()), voice=MachineVoice(library))
    async with session.open(lambda message: None, Shown()) as (call, _):
        await trio.sleep(0.05)
        call.publish(UserStoppedSpeaking())
        await until(lambda: any(any(pcm) for _, pcm in library.heard))
        call.handle.pause()
        held_s = time.perf_counter()
        await until(lambda: len(library.since(held_s)) > 20)
        assert library.is_silent_since(held_s)
        call.handle.resume()
        resumed_s = time.perf_counter()
        await until(lambda: any(any(pcm) for at_s, pcm in library.heard if at_s > resumed_s))


@pytest.mark.parametrize(
    ("library", "says"),
    [
        (SoundDevice(missing="input"), "this machine has no microphone (Error querying device"),
        (SoundDevice(missing="output"), "this machine has no loudspeaker (Error querying device"),
        (SoundDevice(refuses="input"), "the microphone does not give 16000 Hz in one channel"),
        (SoundDevice(refuses="output"), "the loudspeaker does not give 24000 Hz in one channel"),
    ],
)
async def test_a_machine_without(library, says):
    """What is missing is told, and what was opened is closed."""
    with pytest.raises(VoiceError) as raised:
        async with MachineVoice(library).open(lambda message: None):
            pytest.fail("it was opened")
    assert says in str(raised.value)
    assert len(library.closed) == len(library.streams)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ("raise ImportError('No module named sounddevice')", "pip install 'bargein[voice]'"),
        ("raise OSError('PortAudio library not found')", "--voice needs PortAudio"),
    ],
)
async def test_a_missing_library(error, says, monkeypatch, tmp_path):
    """A missing library, or PortAudio, is told with what to do."""
    (tmp_path / "sounddevice.py").write_text(error)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "sounddevice", raising=False)
    with pytest.raises(VoiceExtraError, match="--voice needs") as raised:
        async with MachineVoice().open(lambda message: None):
            pytest.fail("it was opened")
    assert says in str(raised.value)

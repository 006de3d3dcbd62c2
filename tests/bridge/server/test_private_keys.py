"""Keys that are asked for privately are in nothing that a server writes, sends or stores."""

from __future__ import annotations

import io
import json
import logging
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio
from pydantic import SecretStr

from bargein import App, Call, CallActionError, ChatNode
from bargein.cli import configure_logs
from bargein.client import NetworkCaller
from bargein.conversations import SqliteConversations
from bargein.events import (
    CallEnded,
    CustomReceived,
    DTMFInput,
    PrivateInput,
    RecordingPaused,
    RecordingResumed,
    TranscriptionFailed,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.phone import KeyCheckError, Keypad
from bargein.testing import ScriptedModel, open_call, open_phone

CARD = "4929735128640173"
PIN = "Please key in the number of your card, then hash."
LEAKS = re.compile(rf"{CARD}|{' '.join(CARD)}|(?:button|digit|dtmf|key)\W{{1,9}}[0-9]\b")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
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


class Clerk:
    """An agent that asks for a card, and keeps all that anybody could have of it."""

    def __init__(self, **options: Any) -> None:
        self.model = ScriptedModel(["Thank you.", "Thank you.", "Thank you."])
        self.options = options
        self.card: SecretStr | None = None
        self.events: list[object] = []
        self.sound: list[tuple[float, bool]] = []
        self.failed: BaseException | None = None
        self.asked = trio.Event()
        self.done = trio.Event()

    async def answer(self, call: Call) -> None:
        call.converse(ChatNode(self.model))
        call.router.observe(lambda message: True, self._tap)
        keypad = Keypad(call)
        self.asked.set()
        try:
            self.card = await keypad.ask_privately(PIN, most=16, **self.options)
        except (CallActionError, KeyCheckError) as error:
            self.failed = error
        self.done.set()

    def _tap(self, message: Any) -> None:
        if isinstance(message.event, UserAudio):
            self.sound.append((message.at_s, any(message.event.pcm)))
        else:
            self.events.append(message.event)

    def everything(self) -> str:
        return "\n".join(map(repr, [*self.events, *self.model.requests, self.card, self.failed]))


async def enter(caller: NetworkCaller, keys: str) -> None:
    for key in keys:
        caller.press(key)  # type: ignore[arg-type]
        await trio.sleep(0.2)


async def test_a_card_is_in_nothing_that_a_server_has(
    serving: Any, written: io.StringIO, autojump_clock: Any
) -> None:
    """Logs at DEBUG, the watcher, what clients get, events and requests of a model."""
    clerk = Clerk()
    async with serving(clerk.answer) as place, place.call(mode="text") as caller:
        caller.watch(True)
        await clerk.asked.wait()
        await trio.sleep(1.0)
        await enter(caller, CARD[:8])
        caller.write(f"It is {' '.join(CARD)}")
        caller.send_custom({"card": CARD})
        await enter(caller, CARD[8:] + "#")
        await clerk.done.wait()
        await trio.sleep(1.0)
        caller.write("Did you get it?")
        await trio.sleep(5.0)
        got = [repr(each.message) for each in caller.received]
    assert clerk.card is not None
    assert clerk.card.get_secret_value() == CARD
    assert clerk.model.requests
    for where, text in {
        "the log": written.getvalue(),
        "the clients": "\n".join(got),
        "the events and the model": clerk.everything(),
    }.items():
        assert LEAKS.search(text) is None, (where, LEAKS.search(text))
    assert "PrivateInput" in clerk.everything()


@pytest.mark.proof
async def test_a_card_is_in_no_file_of_a_store(tmp_path: Path) -> None:
    """What was said before and afterwards is there; in real time, because it has a thread."""
    clerk, carrier = Clerk(), Records()
    app = App(clerk.answer, conversations=SqliteConversations(tmp_path / "said.db"))
    async with app.open(), app.open_call(carrier) as call:
        await clerk.asked.wait()
        while not clerk.events:  # noqa: ASYNC110 - it has begun to ask
            await trio.sleep(0.01)
        await trio.sleep(0.05)
        for key in CARD:
            call.publish(DTMFInput.model_validate({"button": key}))
        await clerk.done.wait()
        call.publish(UserTranscriptionReceived(content="Did you get it?"))
        call.publish(UserStoppedSpeaking())
        while "Thank" not in repr(call.history.entries):  # noqa: ASYNC110
            await trio.sleep(0.01)
    assert clerk.card is not None
    files = [path for path in tmp_path.iterdir() if path.is_file()]  # noqa: ASYNC240
    stored = b"".join(path.read_bytes() for path in files)
    assert b"Did you get it?" in stored
    assert LEAKS.search(stored.decode("latin-1")) is None


def tone(seconds: float) -> bytes:
    return array("h", [3_000, -3_000] * round(8_000 * seconds)).tobytes()


async def test_sound_is_silence_meanwhile_and_until_the_last_tone_is_over(autojump_clock: Any):
    """Ears and taps get as much as the line sends, and the record says from when until when."""
    clerk = Clerk()
    async with open_call(clerk.answer, chars_per_s=100) as caller:

        async def send(seconds: float) -> None:
            for _ in range(round(seconds / 0.02)):
                caller.publish(UserAudio(pcm=tone(0.02)))
                await trio.sleep(0.02)

        await caller.at(0.1)
        await send(0.1)
        for key in CARD:
            caller.publish(DTMFInput.model_validate({"button": key}))
            await send(0.1)
        await send(1.0)
        last_s = 0.2 + 15 * 0.1
    assert clerk.card is not None
    assert len(clerk.sound) == round((0.1 + 1.6 + 1.0) / 0.02)
    audible = [at_s for at_s, loud in clerk.sound if loud]
    assert min(audible) == pytest.approx(last_s + 0.5, abs=0.03)
    marks = [one for one in clerk.events if isinstance(one, RecordingPaused | RecordingResumed)]
    assert [type(one) for one in marks] == [RecordingPaused, RecordingResumed]
    assert marks[1].paused_s == pytest.approx(last_s + 0.5, abs=0.03)  # type: ignore[union-attr]


@pytest.mark.parametrize("way", ["cancelled", "hung up", "timed out", "wrong", "check fails"])
async def test_however_it_ends_the_recording_goes_on(way: str, autojump_clock: Any) -> None:
    """And the caller is heard again; an error does not tell what was entered."""

    def check(keys: str) -> bool:
        if way == "check fails":
            raise ValueError(f"{keys} is not good")
        return way != "wrong"

    clerk = Clerk(check=check, tries=1, timeout_s=2.0)
    scope = trio.CancelScope()

    async def answer(call: Call) -> None:
        with scope:
            await clerk.answer(call)
        await trio.sleep_forever()

    async with open_call(answer, chars_per_s=100) as caller:
        await caller.at(0.2)
        if way in ("wrong", "check fails"):
            for key in CARD:
                caller.publish(DTMFInput.model_validate({"button": key}))
        if way == "cancelled":
            scope.cancel()
        if way != "hung up":
            await trio.sleep(4.0)
            assert [type(one) for one in caller.events(RecordingResumed)] == [RecordingResumed]
            caller.publish(DTMFInput(button="5"))
            assert DTMFInput(button="5") in clerk.events
    assert clerk.card is None
    assert LEAKS.search(clerk.everything().replace("button='5'", "")) is None
    assert isinstance(clerk.failed, KeyCheckError) == (way == "check fails")
    assert any(isinstance(one, CallEnded) for one in clerk.events)


async def test_a_voice_is_no_barge_in_and_no_turn_meanwhile(autojump_clock: Any) -> None:
    """Only a key stops the text; a turn that had begun before is over without words."""
    clerk = Clerk()
    async with open_call(clerk.answer, chars_per_s=10) as caller:
        await caller.at(1.0)
        caller.publish(UserStartedSpeaking())
        caller.publish(UserTranscriptionReceived(content="four nine two nine"))
        caller.publish(UserStoppedSpeaking())
        caller.publish(CustomReceived(metadata={"card": CARD}))
        await caller.at(2.0)
        assert caller.heard == PIN[:20].strip() or caller.heard.startswith("Please key in the")
        caller.publish(DTMFInput(button="4"))
        await caller.at(2.1)
        heard = caller.heard
        await caller.at(2.5)
        assert caller.heard == heard
        assert not clerk.model.requests
        assert [one.reason for one in caller.events(TranscriptionFailed)] == ["no_words"]
        assert len([one for one in clerk.events if isinstance(one, PrivateInput)]) == 4


class Records:
    """A carrier that records, and may refuse to pause that, or never answer to go on."""

    audio, sample_rate_hz = False, 8_000

    def __init__(self, refuses: bool = False, hangs: bool = False) -> None:
        self.paused: list[bool] = []
        self.refuses = refuses
        self.hangs = hangs

    def send(self, message: Any) -> None:
        """Take no events."""

    def play(self, utterance: int, pcm: bytes) -> None:
        """Play nothing."""

    def clear(self, utterance: int, reason: str) -> None:
        """Drop nothing."""

    async def pause_recording(self, on: bool) -> None:
        await trio.sleep(0.3)
        if self.refuses and on:
            raise CallActionError("recordings cannot be paused")
        if self.hangs and not on:
            await trio.sleep_forever()
        self.paused.append(on)


@pytest.mark.parametrize("refuses", [False, True])
async def test_the_carriers_recording_pauses_before_anything_is_asked(
    refuses: bool, autojump_clock: Any
) -> None:
    """One that cannot pause fails the question, which nobody has heard."""
    clerk, carrier = Clerk(tries=1, timeout_s=1.0), Records(refuses)
    async with App(clerk.answer).open_call(carrier):
        await clerk.done.wait()
        assert carrier.paused == ([False] if refuses else [True, False])
        assert isinstance(clerk.failed, CallActionError) == refuses


async def test_a_recording_that_does_not_go_on_is_told(autojump_clock: Any) -> None:
    """A carrier that never answers fails the question, as one that refuses does."""
    clerk, carrier = Clerk(tries=1, timeout_s=1.0), Records(hangs=True)
    began_s = trio.current_time()
    async with App(clerk.answer).open_call(carrier):
        await clerk.done.wait()
        assert isinstance(clerk.failed, CallActionError)
        assert trio.current_time() - began_s < 60.0


@pytest.mark.parametrize(
    "wire",
    ["twilio"]
    + [
        pytest.param(name, marks=pytest.mark.proof)
        for name in ("telnyx", "twilio-media", "telnyx-media", "plivo", "vonage", "exotel")
    ],
)
async def test_a_card_is_told_by_no_wire_of_a_telephone(
    wire: Any, written: io.StringIO, autojump_clock: Any
) -> None:
    """Its messages, log lines and the carrier's own view of what we say back."""
    pytest.importorskip("httpx2")  # of the extra "phone"
    clerk = Clerk()
    async with open_phone(clerk.answer, wire=wire) as phone:
        await trio.sleep(1.0)
        for key in CARD:
            await phone.press(key)
            await trio.sleep(0.2)
        await clerk.done.wait()
        await phone.quiet()
        sent = json.dumps(phone.line.received, default=repr)
    assert clerk.card is not None
    assert clerk.card.get_secret_value() == CARD
    assert LEAKS.search(clerk.everything()) is None
    assert CARD not in sent
    assert LEAKS.search(written.getvalue()) is None

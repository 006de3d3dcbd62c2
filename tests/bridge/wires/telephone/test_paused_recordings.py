"""A carrier's recording of a call has no secret that is typed in it."""

import pytest
import trio

from bargein import App, CallActionError
from bargein.events import RecordingPaused, RecordingResumed
from bargein.fakes import FakeTelnyx, FakeTwilio, MemoryListener
from bargein.phone import Keypad, Telnyx
from bargein.server import open_server
from bargein.testing import open_phone


def asking(told):
    """Return an app that asks for a PIN, and notes what becomes of it."""

    async def answer(call):
        kinds = [RecordingPaused, RecordingResumed]
        call.router.observe(kinds, lambda m: told.append(type(m.event).__name__))
        try:
            pin = await Keypad(call).ask_privately("Your PIN, please.", most=4)
            told.append(pin.get_secret_value())
        except CallActionError as error:
            told.append(error.cause)

    return answer


async def enter(line):
    await trio.sleep(4.0)
    for key in "1234":
        await line.press(key)
        await trio.sleep(0.2)
    await trio.sleep(3.0)


@pytest.mark.parametrize("wire", ["twilio", "twilio-media"])
async def test_twilio_pauses_its_recording_while_a_secret_is_typed(autojump_clock, wire):
    """It pauses before anything is asked, and goes on behind the last key."""
    told, twilio = [], FakeTwilio()

    async def answer(call):
        await trio.sleep(0.5)
        await asking(told)(call)

    async with open_phone(answer, wire=wire, carrier=twilio) as phone:
        twilio.record(phone.line.sid)
        await enter(phone.line)
        assert twilio.recordings == {phone.line.sid: ["in-progress", "paused", "in-progress"]}
    assert told == ["RecordingPaused", "RecordingResumed", "1234"]


async def test_a_call_that_nobody_records_is_asked_as_any(autojump_clock):
    """That there is nothing to pause is no failure."""
    told = []
    async with open_phone(asking(told)) as phone:
        await enter(phone.line)
    assert told == ["RecordingPaused", "RecordingResumed", "1234"]


async def test_a_recording_that_cannot_be_paused_is_told_before_the_question(autojump_clock):
    """The app hears of it, and no secret is asked for."""
    told, twilio = [], FakeTwilio()
    twilio.fail_next(20003)
    async with open_phone(asking(told), twilio=twilio) as phone:
        await enter(phone.line)
        assert "PIN" not in phone.line.heard
    assert told == ["RecordingPaused", "RecordingResumed", "unable"]


@pytest.mark.parametrize("records", [True, False])
async def test_telnyx_pauses_where_the_account_records(autojump_clock, records):
    """An account that says that it records is asked to pause; another is asked nothing."""
    told, fake = [], FakeTelnyx(numbers={"+15550100": ""})
    phone = Telnyx(
        api_key=fake.api_key,
        public_key=fake.public_key,
        records=records,
        transport=fake.transport(),
    )
    url, door = "https://voice.example.com", MemoryListener()
    served = {"listeners": [door], "public_url": url, "token": "a token of nobody's"}
    async with open_server(App(asking(told), phone=phone), **served), fake.call(door.dial) as line:
        fake.record(line.sid)
        await enter(line)
        asked = [each.rpartition("/")[2] for each in fake.requests]
        assert asked == (["record_pause", "record_resume"] if records else [])
    assert told == ["RecordingPaused", "RecordingResumed", "1234"]

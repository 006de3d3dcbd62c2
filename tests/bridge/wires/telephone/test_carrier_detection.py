"""A carrier tells who answers a call that was placed, and the call tells it on."""

import pytest
import trio

from bargein import App
from bargein.events import AnsweredBy
from bargein.fakes import (
    FakePhone,
    FakePlivo,
    FakeTelnyx,
    FakeTwilio,
    FakeVonage,
    MemoryListener,
)
from bargein.phone import Plivo, Telnyx, Twilio, Vonage, WhoAnswered
from bargein.server import open_server
from bargein.testing import SpelledSpeech

pytestmark = pytest.mark.proof

OURS, THEIRS, URL = "+15550100", "+15550001", "https://voice.example.com"


def twilio(fake):
    return Twilio(
        account_sid=fake.account_sid, auth_token=fake.auth_token, transport=fake.transport()
    )


def telnyx(fake):
    return Telnyx(api_key=fake.api_key, public_key=fake.public_key, transport=fake.transport())


def plivo(fake):
    return Plivo(
        auth_id=fake.auth_id,
        auth_token=fake.auth_token,
        speech=SpelledSpeech(),
        transport=fake.transport(),
    )


def vonage(fake):
    return Vonage(
        api_key=fake.api_key,
        api_secret=fake.api_secret,
        signature_secret=fake.signature_secret,
        application_id=fake.application_id,
        private_key=fake.private_key,
        speech=SpelledSpeech(),
        transport=fake.transport(),
    )


def telnyx_with_number(**options):
    fake = FakeTelnyx(numbers={OURS: ""})
    fake.phones.update(options["phones"])
    return fake


CARRIERS = {
    "twilio": (FakeTwilio, twilio),
    "telnyx": (telnyx_with_number, telnyx),
    "plivo": (FakePlivo, plivo),
    "vonage": (FakeVonage, vonage),
}


async def dialled(name, detected, answer, *, detect=True):
    """Call somebody by a carrier, and wait until they were told who answers."""
    fake_of, account_of = CARRIERS[name]
    fake = fake_of(phones={THEIRS: FakePhone(detected=detected)})
    phone, door = account_of(fake), MemoryListener()
    served = {"listeners": [door], "public_url": URL, "token": "a token of nobody's"}
    async with open_server(App(answer, phone=phone), **served), fake.serve(door.dial):
        if name == "telnyx":
            await phone.claim(OURS, URL)
        placed = await phone.dial(THEIRS, sender=OURS, detect=detect)
        await placed.answered()
        await trio.sleep(5.0)
        return placed


@pytest.mark.parametrize("name", CARRIERS)
@pytest.mark.parametrize(("detected", "who"), [("human", "person"), ("machine_start", "voicemail")])
async def test_a_call_tells_who_answers_it(autojump_clock, name, detected, who):
    """The carrier's word is an event of the call, with the time that it took."""
    told = []

    async def answer(call):
        call.router.observe(AnsweredBy, lambda m: told.append(m.event))
        await call.ended.wait()

    placed = await dialled(name, detected, answer)
    assert [(each.who, each.basis) for each in told] == [(who, "carrier")]
    assert 2_900 < told[0].after_ms < 3_500
    assert placed.answered_by == told[0]


@pytest.mark.parametrize("name", CARRIERS)
async def test_nobody_is_told_of_what_was_not_asked_for(autojump_clock, name):
    """Detection costs money and time, so it is off unless the app asks for it."""
    told = []

    async def answer(call):
        call.router.observe(AnsweredBy, lambda m: told.append(m.event))
        await call.ended.wait()

    placed = await dialled(name, "machine_start", answer, detect=False)
    assert (told, placed.answered_by) == ([], None)


async def test_a_machine_that_the_carrier_finds_cuts_what_the_agent_says(autojump_clock):
    """Its verdict counts as one of ours does."""
    verdicts = []

    async def answer(call):
        who = WhoAnswered(call)
        call.say("Good evening, this is the café, your cake is ready and waits for you here. " * 3)
        verdicts.append(await who.verdict())
        verdicts.append(call.answer)

    await dialled("twilio", "machine_end_beep", answer)
    assert (verdicts[0].who, verdicts[0].basis, verdicts[1]) == ("voicemail", "carrier", None)

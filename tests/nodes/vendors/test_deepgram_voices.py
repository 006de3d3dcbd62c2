"""Deepgram's voices, each against the fake of its service, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein.events import AgentSpeechCut, UserStartedSpeaking, UserStoppedSpeaking
from bargein.fakes import FakeDeepgramAura, FakeDeepgramFluxVoice, FakeVoice, Fault
from bargein.speech import SpeechNotOpenError, SpeechPiece, TextSaid, VoiceStyle
from bargein.vendors import SessionLimits, VendorError
from bargein.voices import DeepgramVoice
from tests.nodes.vendors.test_voices import CHAR_S, WORDS, receive_all, speaking

FAKES: dict[str, type[FakeVoice]] = {
    "flux-haley-en": FakeDeepgramFluxVoice,
    "aura-2-thalia-en": FakeDeepgramAura,
}


@pytest.fixture(params=FAKES)
def model(request: pytest.FixtureRequest) -> Any:
    """Give a voice of each family."""
    return request.param


def vendor_of(model: str, fault: Fault | None = None) -> FakeVoice:
    """Return the service that says a voice."""
    return FAKES[model](fault)


def voice_of(model: str, vendor: FakeVoice) -> DeepgramVoice:
    """Return a voice that asks a fake."""
    limits = SessionLimits(attempts=2)
    return DeepgramVoice(
        model, api_key="s3cret", base_url="ws://fake", dial=vendor.dial, limits=limits
    )


def long(text: str) -> Any:
    """Return for how long the fake says a text: it says words, each with a space."""
    return pytest.approx(sum(len(word) + 1 for word in text.split()) * CHAR_S, abs=0.001)


async def say(voice: Any, *texts: str, style: VoiceStyle | None = None) -> tuple[float, int]:
    """Say texts, each with a flush; return how much audio came, and the answered flushes."""
    async with voice.open_context(style or VoiceStyle()) as context:
        for text in texts:
            await context.send(text)
            await context.flush()
        await context.end()
        audio_s, _, flushes = await receive_all(context)
    return audio_s, flushes


def asked(vendor: FakeVoice, *kinds: str) -> list[str]:
    """Return which messages of some kinds were sent, in order."""
    return [message["type"] for message in vendor.received if message["type"] in kinds]


async def test_text_in_pieces_becomes_audio(autojump_clock, model):
    """All text is said, each flush is answered, and the key is in no address."""
    async with vendor_of(model).open() as vendor:
        voice = voice_of(model, vendor)
        async with voice.open():
            said = await say(voice, "One large latte. ", "Anything else?")
    assert said == (long("One large latte. Anything else?"), 2)
    path = "/v2/speak" if model.startswith("flux") else "/v1/speak"
    assert vendor.requests[0].startswith(f"{path}?model=")
    assert "encoding=linear16&sample_rate=24000" in vendor.requests[0]
    assert "s3cret" not in repr(voice) + "".join(vendor.requests)
    assert vendor.received[0] == {"type": "Speak", "text": "One large latte. "}


async def test_an_utterance_leaves_its_socket_to_the_next(autojump_clock, model):
    """Utterances one after the other share two sockets; those at once have one each."""
    async with vendor_of(model).open() as vendor:
        voice = voice_of(model, vendor)
        async with voice.open():
            for _ in range(4):
                await say(voice, "Hello.")
            assert vendor.lines <= 2
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(say, voice, "Hello.")
            assert 4 <= vendor.lines <= 6


async def test_a_cut_closes_its_socket(autojump_clock, model):
    """A cancel stops the vendor, and late audio never reaches another utterance."""
    async with vendor_of(model).open() as vendor:
        voice = voice_of(model, vendor)
        async with voice.open():
            async with voice.open_context(VoiceStyle()) as context:
                await context.send("One large latte with oat milk and a muffin.")
                await context.flush()
                assert isinstance(await context.receive(), SpeechPiece)
            assert await say(voice, "Two.") == (long("Two."), 1)
            await trio.sleep(0.5)
    stop = "Interrupt" if model.startswith("flux") else "Clear"
    assert asked(vendor, "Clear", "Interrupt") == [stop]


async def test_text_without_a_flush_is_said(autojump_clock, model):
    """The end of an utterance has the rest said, though the vendor knows no such message."""
    async with vendor_of(model).open() as vendor:
        voice = voice_of(model, vendor)
        async with voice.open(), voice.open_context(VoiceStyle()) as context:
            await context.send("One large latte.")
            await context.end()
            assert (await receive_all(context))[0] == long("One large latte.")


async def test_spaces_are_no_text(autojump_clock, model):
    """A flush of nothing but spaces is answered, and costs none of the vendor's flushes."""
    async with vendor_of(model).open() as vendor:
        voice = voice_of(model, vendor)
        async with voice.open():
            assert await say(voice, " ", "\n") == (0.0, 2)
            assert await say(voice, "Yes.", " ", "No.") == (long("Yes. No."), 3)
    assert len(asked(vendor, "Flush")) == 2


async def test_few_flushes_wait_at_once(autojump_clock, model):
    """Aura is flushed for several clauses at once; all of them are answered all the same."""
    async with vendor_of(model).open() as vendor:
        voice = voice_of(model, vendor)
        async with voice.open():
            said = await say(voice, *["Yes. "] * 30)
    assert said == (long("Yes. " * 30), 30)
    flushes = len(asked(vendor, "Flush"))
    assert flushes == 30 if model.startswith("flux") else flushes <= 4


@pytest.mark.parametrize("every_s", [0.3, 1.0, 2.0])
async def test_a_socket_is_flushed_as_often_as_the_vendor_allows(autojump_clock, every_s):
    """Short clauses go on being said for minutes, where Aura takes 20 flushes in each."""
    clauses, arrived_s = 150, []
    async with FakeDeepgramAura().open() as vendor:
        voice = voice_of("aura-2-thalia-en", vendor)
        async with voice.open(), voice.open_context(VoiceStyle()) as context:

            async def write() -> None:
                for _ in range(clauses):
                    await context.send("Yes. ")
                    await context.flush()
                    await trio.sleep(every_s)
                await context.end()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                while (piece := await context.receive()) is not None:
                    if isinstance(piece, TextSaid):
                        arrived_s.append(trio.current_time())
    assert len(arrived_s) == clauses  # the fake refuses a flush too many
    waits_s = [arrived - number * every_s for number, arrived in enumerate(arrived_s)]
    assert max(waits_s[:9]) < 0.3
    assert max(waits_s) < 6.5  # a flush each 6 s, and what it takes to be said


async def test_a_socket_of_which_few_flushes_are_left_says_nothing_more(autojump_clock):
    """Short utterances one after the other get a fresh socket each few, and none is refused."""
    async with FakeDeepgramAura().open() as vendor:
        voice = voice_of("aura-2-thalia-en", vendor)
        async with voice.open():
            for _ in range(60):
                began_s = trio.current_time()
                assert (await say(voice, "Yes.", "No."))[1] == 2
                assert trio.current_time() - began_s < 0.1  # and none of them waits
    assert asked(vendor, "Clear") == []
    assert 10 < vendor.lines < 30


async def test_a_flush_that_is_refused_fails_the_utterance(autojump_clock):
    """A warning that a flush is not processed fails the utterance instead of hanging it."""
    fault = Fault("error", at="first")
    async with FakeDeepgramAura(fault).open() as vendor:
        voice = voice_of("aura-2-thalia-en", vendor)
        async with voice.open():
            with pytest.raises(VendorError, match="EXCESSIVE_FLUSH"):
                await say(voice, "Hello.")


async def test_an_error_fails_the_utterance_alone(autojump_clock, model):
    """What the vendor refuses is an error with its code, and the next utterance works."""
    vendor = vendor_of(model, Fault("error", at="first"))
    async with vendor.open():
        voice = voice_of(model, vendor)
        async with voice.open():
            with pytest.raises(VendorError, match=r"NET-0000|EXCESSIVE_FLUSH"):
                await say(voice, "Hello.")
            assert (await say(voice, "Hello."))[1] == 1


async def test_garbage_is_left_out(autojump_clock, model):
    """Messages that nobody can read cost nothing."""
    vendor = vendor_of(model, Fault("garbage", at="first"))
    async with vendor.open():
        voice = voice_of(model, vendor)
        async with voice.open():
            audio_s, flushes = await say(voice, "Hello.")
    assert (audio_s, flushes) == (long("Hello."), 1)


async def test_a_line_that_breaks_before_the_first_sound_costs_nothing(autojump_clock, model):
    """What nothing was heard of is asked for again on the next line."""
    vendor = vendor_of(model, Fault("drop", at="first"))
    async with vendor.open():
        voice = voice_of(model, vendor)
        async with voice.open():
            said = await say(voice, "Hello there.")
    assert said == (long("Hello there."), 1)


async def test_a_line_that_breaks_in_mid_utterance_is_an_error(autojump_clock, model):
    """What was half said fails: nobody knows what is missing.  The next utterance works."""
    vendor = vendor_of(model, Fault("drop", at="middle"))
    async with vendor.open():
        voice = voice_of(model, vendor)
        async with voice.open():
            with pytest.raises(VendorError, match="in mid-utterance"):
                await say(voice, "Hello there.")
            assert (await say(voice, "Again."))[1] == 1


async def test_the_style_is_in_the_address(autojump_clock, model):
    """Another voice or speed is said over a socket of its own."""
    async with vendor_of(model).open() as vendor:
        voice = voice_of(model, vendor)
        async with voice.open():
            await say(voice, "Hello.")
            other = "flux-leo-en" if model.startswith("flux") else "aura-2-leo-en"
            await say(voice, "Hello.", style=VoiceStyle(voice=other, speed=1.2))
    assert any(f"model={other}" in path and "speed=1.2" in path for path in vendor.requests)


async def test_a_voice_that_is_not_open_says_so(autojump_clock, model):
    """Opening a context of a closed voice raises an error that says what to do."""
    voice = voice_of(model, vendor_of(model))
    with pytest.raises(SpeechNotOpenError, match="async with"):
        async with voice.open_context(VoiceStyle()):
            pass


@pytest.mark.parametrize("left_s", [0.0, 0.005, 0.01, 0.02, 0.1, 0.3, 1.0])
async def test_leaving_at_any_moment_leaves_nothing(autojump_clock, model, left_s):
    """Wherever an utterance is left, the next one is said whole, and only its own audio is."""
    async with vendor_of(model).open() as vendor:
        voice = voice_of(model, vendor)
        async with voice.open():
            with trio.move_on_after(left_s):
                await say(voice, "One large latte ", "with oat milk.")
            assert await say(voice, "Two.") == (long("Two."), 1)


# --- in a call ------------------------------------------------------------------------------------


async def test_a_call_hears_every_word(autojump_clock, model):
    """What the caller hears is the text to the letter."""
    async with (
        vendor_of(model).open() as vendor,
        speaking(voice_of(model, vendor), WORDS) as caller,
    ):
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "".join(WORDS)


@pytest.mark.parametrize("cut_s", [0.1, 0.5, 1.0, 1.6])
async def test_a_barge_in_is_known_to_the_clause(autojump_clock, model, cut_s):
    """A cut ends the vendor's work in the same step; what was heard is a prefix of the text."""
    async with (
        vendor_of(model).open() as vendor,
        speaking(voice_of(model, vendor), WORDS * 20) as caller,
    ):
        caller.publish(UserStoppedSpeaking())
        await caller.at(cut_s)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(0.1)
        for cut in caller.events(AgentSpeechCut):
            assert ("".join(WORDS) * 20).startswith(cut.heard)
        sent = len(vendor.received)
        await trio.sleep(5)
        assert len(vendor.received) == sent
        await caller.quiet()


async def test_clauses_that_share_a_flush_are_heard(autojump_clock, model):
    """A clause that has no sound of its own is heard with those that it was said with."""
    clauses = ["Yes. ", "No. ", "Perhaps. ", "Or else. ", "Very well. ", "Good bye then. "] * 5
    async with (
        vendor_of(model).open() as vendor,
        speaking(voice_of(model, vendor), clauses) as caller,
    ):
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "".join(clauses)

"""An ear in a call, with engines that do as the script says, in virtual time."""

from contextlib import asynccontextmanager

import trio
import trio.testing

from bargein.events import (
    UserAudio,
)
from bargein.speech import Hearing, ListeningSettings, Transcript
from bargein.testing import open_call

FRAME_S = 0.032


VOICE, ECHO, SILENCE = b"\x01\x10" * 512, b"\x02\x10" * 512, b"\x00\x00" * 512


class LoudIsSpeech:
    """A detector: whatever does not begin with a zero is speech."""

    frame_samples = 512

    def probability(self, frame):
        return 0.9 if frame[0] else 0.0


class Engines:
    """A recogniser and an end-of-turn model that take their time."""

    def __init__(self, text="a latte", complete=0.9, takes_s=0.2, fails=False):
        self.text, self.complete, self.takes_s, self.fails = text, complete, takes_s, fails
        self.heard = []
        self.cancelled = 0

    async def transcribe(self, pcm):
        self.heard.append(pcm)
        try:
            await trio.sleep(self.takes_s)
        except trio.Cancelled:
            self.cancelled += 1
            raise
        if self.fails:
            raise RuntimeError("no model")
        return Transcript(self.text)

    async def probability(self, pcm):
        await trio.sleep(self.takes_s / 2)
        return self.complete


class Says:
    """A sound detector that is of one opinion."""

    after_s = 0.192

    def __init__(self, kind, probability):
        self.kind, self.says, self.heard = kind, probability, []

    def probability(self, pcm):
        self.heard.append(pcm)
        return self.says


@asynccontextmanager
async def listening(
    engines,
    end_of_turn=None,
    sounds=(),
    echo=None,
    noise_filter=None,
    expect_errors=False,
    first=SILENCE,
    **settings,
):
    """Open a call with an ear; ``first`` is the first window of its microphone."""

    async def answer(call):
        Hearing(
            call.bridge(name="ears", is_agent=False),
            engines,
            vad=LoudIsSpeech(),
            end_of_turn=end_of_turn or engines,
            settings=ListeningSettings(**settings),
            sounds=sounds,
            echo=echo,
            noise_filter=noise_filter,
        )

    async with open_call(answer, expect_errors=expect_errors) as caller:
        await trio.testing.wait_all_tasks_blocked()
        caller.publish(UserAudio(pcm=first))
        yield caller


async def send(caller, frame, seconds):
    for _ in range(round(seconds / FRAME_S)):
        caller.publish(UserAudio(pcm=frame))
        await trio.sleep(FRAME_S)


def times(caller, kind):
    return [round(r.at_s, 3) for r in caller.received if isinstance(r.event, kind)]

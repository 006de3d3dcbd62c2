"""What verbs do to speech that is not interruptible; 10 characters are said in a second."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from bargein import Call, Message
from bargein.events import AgentResponse, UserStartedSpeaking, UserStoppedSpeaking, Verb
from bargein.testing import Caller, open_call

NOTICE = "This call is recorded."
CUT_TOO = "speech that is not interruptible is cut too"


class Clerk:
    """Has much to say."""

    async def generate(self, message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One two three four five six seven eight. ")
        await trio.sleep(9)


async def clerk(call: Call) -> None:
    call.converse(Clerk())


def use(caller: Caller, verb: Verb) -> None:
    handle = caller.call.handle
    handle.redirect("no") if verb == "redirect" else getattr(handle, verb)()


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        ("redirect", "redirected"),
        ("cancel", "interrupted"),
        ("emergency_stop", "interrupted"),
        ("shutdown", "shutdown"),
    ],
)
async def test_a_verb_cuts_a_notice_and_says_so_before(autojump_clock, verb, outcome):
    """The line of the verb tells it, the sound stops at once, and the notice's handle knows."""
    async with open_call(clerk, chars_per_s=10) as caller:
        notice = caller.call.say(NOTICE, interruptible=False)
        await caller.at(1.0)
        assert CUT_TOO in caller.call.handle.describe(verb)
        use(caller, verb)
        assert await notice == outcome
        assert caller.now_s == pytest.approx(1.0)
        assert notice.heard == "This call"


async def test_a_barge_in_leaves_a_notice_alone_and_says_so_before(autojump_clock):
    """By voice and by verb: what else is said is cut, the notice is heard to its end."""
    async with open_call(clerk, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        notice = caller.call.say(NOTICE, interruptible=False)
        line = caller.call.handle.describe("barge_in")
        assert line.endswith("; speech that is not interruptible is heard to its end.")
        assert caller.call.handle.barge_in().accepted
        await caller.at(1.5)
        line = "Barge in: nothing would happen; what is being said is not interruptible."
        assert caller.call.handle.describe("barge_in") == line
        assert not caller.call.handle.barge_in().accepted
        caller.publish(UserStartedSpeaking())
        assert await notice == "completed"
        assert caller.heard == f"One two\n{NOTICE}"


async def test_verbs_say_nothing_of_notices_where_there_are_none(autojump_clock):
    """Once it was heard, and for what is interruptible, the line is as it was."""
    async with open_call(clerk, chars_per_s=10) as caller:
        await caller.call.say(NOTICE, interruptible=False)
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1.0)
        for verb in ("redirect", "cancel", "barge_in", "emergency_stop", "shutdown", "pause"):
            assert "interruptible" not in caller.call.handle.describe(verb)

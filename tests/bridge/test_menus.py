"""call.say(stop_on_key=True): a spoken menu that stops at the first key, and loses none."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein import AnswerHandle, Call
from bargein.events import AgentResponse, AgentSpeechCut, AnswerEnded, DTMFInput
from bargein.testing import Caller, open_call

MENU = "For sales press one. For service press two."


class Menu:
    """Says a menu, and notes the keys that its chain gets."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.keys: list[str] = []
        self.said: AnswerHandle

    async def answer(self, call: Call) -> None:
        call.bridge(name="keys").on(DTMFInput).map(lambda m: self.keys.append(m.event.button))
        self.said = call.say(MENU, **self.options)


def press(caller: Caller, keys: str) -> None:
    for key in keys:
        caller.publish(DTMFInput(button=key))


@pytest.mark.parametrize("telephone", [False, True])
async def test_the_first_key_stops_it_and_every_key_arrives(telephone: bool, autojump_clock):
    """In the step of the key; the same key twice and those that follow are all there, in order."""
    menu = Menu(stop_on_key=True)
    async with open_call(menu.answer, telephone=telephone, chars_per_s=10) as caller:
        await caller.at(2.05)
        press(caller, "11")
        assert len(caller.events(AgentSpeechCut)) == 1
        await trio.sleep(0.001)
        press(caller, "2#")
        assert await menu.said == "interrupted"
        await caller.quiet()
        assert menu.said.heard == "For sales press one."
        assert menu.keys == [*"112#"]
        assert caller.call.current_state == "idle"
    assert [event.outcome for event in caller.events(AnswerEnded)] == ["interrupted"]


@pytest.mark.parametrize("options", [{}, {"interruptible": False}])
async def test_without_it_a_key_cuts_nothing(options: dict[str, Any], autojump_clock):
    """All of the text is heard, and all keys arrive."""
    menu = Menu(**options)
    async with open_call(menu.answer, chars_per_s=10) as caller:
        await caller.at(1.0)
        press(caller, "1122")
        await caller.quiet()
    assert caller.heard == MENU
    assert menu.keys == [*"1122"]
    assert not caller.events(AgentSpeechCut)


async def test_a_key_stops_all_parts_of_a_menu_and_nothing_else(autojump_clock):
    """Also those that wait for their turn; a text that is no menu is said to its end."""

    async def answer(call: Call) -> None:
        call.say("Welcome. ")
        call.say("For sales press one. ", stop_on_key=True)
        call.say("For service press two. ", stop_on_key=True)
        call.say("This call is recorded. ")

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.at(0.5)
        press(caller, "2")
        await caller.quiet()
    assert [line.strip() for line in caller.heard.splitlines()] == [
        "Welcome.",
        "This call is recorded.",
    ]


async def test_what_a_key_starts_is_said_at_once(autojump_clock):
    """The answer of the chain that gets the key does not wait for the rest of the menu."""

    async def answer(call: Call) -> None:
        chosen = call.bridge(name="chosen").on(DTMFInput, button="2")
        chosen.map(lambda: AgentResponse(content="Service. ")).broadcast()
        call.say(MENU, stop_on_key=True)

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.at(0.95)
        press(caller, "2")
        await caller.quiet()
    assert [line.strip() for line in caller.heard.splitlines()] == ["For sales", "Service."]


async def test_a_menu_that_waits_for_the_end_of_a_pause_is_not_said_after_a_key(autojump_clock):
    """Who has chosen needs no menu; other texts that wait are said."""
    said: list[AnswerHandle] = []

    async def answer(call: Call) -> None:
        call.say("Welcome. ")

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.at(0.35)
        caller.call.handle.pause()
        said += [caller.call.say(MENU, stop_on_key=True), caller.call.say("Thank you. ")]
        await trio.sleep(1)
        press(caller, "1")
        assert await said[0] == "interrupted"
        caller.call.handle.resume()
        assert await said[1] == "completed"
    assert [line.strip() for line in caller.heard.splitlines()] == ["Welcome.", "Thank you."]


async def test_a_text_caller_has_read_it_when_the_key_comes(autojump_clock):
    """Text counts as heard when it is sent; the key arrives all the same."""
    menu = Menu(stop_on_key=True)
    async with open_call(menu.answer, audio=False) as caller:
        await trio.sleep(1)
        press(caller, "1")
        await caller.quiet()
    assert (caller.heard, menu.keys, menu.said.outcome) == (MENU, ["1"], "completed")


async def test_a_voice_stops_it_as_well(autojump_clock):
    """As any text that may be interrupted."""
    menu = Menu(stop_on_key=True)
    async with open_call(menu.answer, chars_per_s=10) as caller:
        await caller.says("wait", at_s=1.0)
        assert await menu.said == "interrupted"


async def test_what_contradicts_itself_is_refused(autojump_clock):
    """No text is protected from the caller, and stopped by the caller's key."""

    async def answer(call: Call) -> None:
        with pytest.raises(ValueError, match="interruptible=False forbids it"):
            call.say(MENU, interruptible=False, stop_on_key=True)
        with pytest.raises(TypeError, match="stop_on_key= is True or False"):
            call.say(MENU, stop_on_key="1")  # type: ignore[arg-type]

    async with open_call(answer):
        pass


@pytest.mark.parametrize("telephone", [False, True])
async def test_equal_keys_in_quick_succession_all_arrive(telephone: bool, autojump_clock):
    """None is lost or doubled while the agent speaks, and speech goes on (jambonz 552)."""
    menu = Menu()
    async with open_call(menu.answer, telephone=telephone) as caller:
        await caller.at(0.5)
        press(caller, "1122334455")
        for key in "99#":
            await trio.sleep(0.001)
            press(caller, key)
        await caller.quiet()
        assert caller.heard == MENU
        assert caller.events(AgentSpeechCut) == []
    assert "".join(menu.keys) == "112233445599#"

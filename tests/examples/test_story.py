"""The storyteller of the examples."""

import trio

from bargein.events import DTMFInput
from bargein.testing import open_call

from .conftest import heard, say


def press(caller, button):
    caller.publish(DTMFInput(button=button))


async def test_a_question_in_the_middle_and_the_story_goes_on_where_it_was(example, autojump_clock):
    """After a barge-in "go on" says the first word that was not heard, and each word once."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        press(caller, "1")
        await trio.sleep(5)
        await say(caller, "What is a lighthouse?")
        first = heard(caller).splitlines()[1]
        rest = await say(caller, "Go on.")
    assert f"{first} {rest}" == example.CHAPTERS[0]
    assert first != ""


async def test_keys_turn_pages(example, autojump_clock):
    """1 cuts the chapter and tells the next one, * tells it again from its beginning."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        press(caller, "1")
        await trio.sleep(3)
        press(caller, "1")
        await trio.sleep(3)
        press(caller, "*")
        await caller.quiet()
        told = heard(caller).splitlines()[1:]
    assert example.CHAPTERS[0].startswith(told[0])
    assert example.CHAPTERS[1].startswith(told[1])
    assert len(told[1]) < len(example.CHAPTERS[1])
    assert told[2] == example.CHAPTERS[1]


async def test_a_pause_loses_nothing(example, autojump_clock):
    """2 holds the voice, and 2 again lets it go on: the chapter is heard whole, as one answer."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        press(caller, "1")
        await trio.sleep(3)
        press(caller, "2")
        before = caller.heard
        await trio.sleep(60)
        assert caller.heard == before
        press(caller, "2")
        await caller.quiet()
        assert heard(caller).splitlines()[1:] == [example.CHAPTERS[0]]


async def test_a_key_without_a_page_does_not_cut(example, autojump_clock):
    """Keys that mean nothing leave the story alone."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        press(caller, "1")
        await trio.sleep(3)
        press(caller, "7")
        await caller.quiet()
        assert heard(caller).splitlines()[1:] == [example.CHAPTERS[0]]


async def test_zero_ends_the_call(example, autojump_clock):
    """0 hangs up, also in the middle of a chapter."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        press(caller, "1")
        await trio.sleep(3)
        press(caller, "0")
        with trio.fail_after(1):
            await caller.call.ended.wait()


async def test_the_story_ends(example, autojump_clock):
    """After the last chapter it says good night."""
    async with open_call(example.answer) as caller:
        for _ in range(4):
            await caller.quiet()
            press(caller, "1")
        await caller.quiet()
    assert heard(caller).endswith("Good night!")

"""What is said when a verb is used wrongly, or too late."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from bridge import Handle, open_agent
from bridge.control import VERBS
from bridge.events import AgentResponse
from nodes import ReasoningNode


class Counter(ReasoningNode):
    """Says a word each second."""

    async def process_context(self, context: Any) -> AsyncIterator[Any]:
        for word in ("one ", "two ", "three "):
            yield AgentResponse(content=word)
            await trio.sleep(1)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
async def test_empty_input_is_refused(autojump_clock, text: str):
    """Nothing was said: no turn begins, and nothing that waits is disturbed."""
    async with open_agent(Counter()) as handle:
        assert not handle.send_input(text)
        await trio.sleep(1)
        assert handle.snapshot().state == "idle"
        assert len(handle._call.history) == 0


MISTAKES = [
    (lambda handle: handle.send_input(7), "send_input() takes a text, not 7"),
    (lambda handle: handle.redirect(None), "redirect() takes a text, not None"),
    (lambda handle: handle.resume(3), "resume() takes a text, not 3"),
    (lambda handle: handle.shutdown("soon"), "deadline_s= is a number from 0, not 'soon'"),
    (lambda handle: handle.describe("cancle"), "no verb 'cancle'; there are pause, resume"),
    (lambda handle: handle._call.control.use("cancle"), "no verb 'cancle'; there are pause"),
    (
        lambda handle: setattr(handle._call.control, "pause_tools", "detatch"),
        "pause_tools is one of finish, cancel, detach, not 'detatch'",
    ),
]


@pytest.mark.parametrize(("use", "message"), MISTAKES)
async def test_a_mistake_is_a_sentence(autojump_clock, use: Any, message: str):
    """It says what was wrong and what there is, and the agent works on."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        with pytest.raises((ValueError, TypeError)) as caught:
            use(handle)
        assert message in str(caught.value)
        await trio.sleep(5)
        assert "one two three" in str(handle._call.history.entries[-1])


async def test_a_note_of_two_lines_is_one_line_of_the_record(autojump_clock):
    """What resume() is given cannot make lines of its own in the note to the model."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        await trio.sleep(0.5)
        handle.pause()
        handle.resume("two\nlines\r\n\n of it")
        [note] = [e for e in handle._call.history.entries if e.role == "note"]
        assert note.content.endswith("+ two lines of it")
        assert "\n" not in note.content


async def test_a_shutdown_settles_when_the_call_is_closed(autojump_clock):
    """Whoever awaits it finds the call over."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        await trio.sleep(0.5)
        await handle.shutdown().settled
        assert handle.snapshot().state == "closed"
        assert handle.cancel().reason == "the call is over"


def test_everything_is_harmless_after_the_event_loop():
    """A handle that outlives its loop answers as that of a call that is over."""
    kept: list[Handle] = []

    async def main() -> None:
        async with open_agent(Counter()) as handle:
            handle.send_input("count")
            kept.append(handle)

    trio.run(main)
    (handle,) = kept
    for verb in VERBS:
        receipt = handle.redirect("x") if verb == "redirect" else getattr(handle, verb)()
        assert (receipt.accepted, receipt.reason) == (False, "the call is over")
    assert not handle.send_input("hello")
    assert not handle.respond("1", allow=True)
    assert handle.describe("cancel") == "Cancel: nothing would happen; the call is over."
    assert handle.snapshot().state == "closed"

"""Connections that break, and responses that fail, under a realtime node."""

from __future__ import annotations

import trio

from bargein.events import AgentError, ListeningFailed

from .calling import LONG, PROMPT, calling

REFUSED_WAITS_S = (0.25, 0.5, 1.0, 2.0)
"""After how long a refused response is asked for again."""

# --- when the line breaks -------------------------------------------------------------------------


async def test_another_line_is_told_what_was_heard(autojump_clock, vendor):
    """On a new line the vendor gets the conversation as it was heard."""
    vendor.replies += [f"{LONG} {LONG}", "Yes?", "Still here."]
    async with calling(vendor) as caller:
        await vendor.hear("Count.")
        await caller.until(lambda caller: "four" in caller.heard)
        await vendor.hear("Stop it please.", takes_s=0.4)
        await caller.quiet()
        heard = caller.call.history.entries[1].heard.strip()  # type: ignore[union-attr]
        vendor.line.line.cut()
        await trio.sleep(2)
        await vendor.hear("Are you there?")
        await caller.quiet()
        assert caller.heard.endswith("Still here. ")
    assert vendor.lines == 2
    assert vendor.line.session["instructions"] == PROMPT
    told = vendor.line.conversation
    assert ("user", "Count.") in told
    assert ("assistant", heard) in told
    assert ("user", "Stop it please.") in told
    assert vendor.line.errors == []


async def test_a_line_that_breaks_before_the_answer_costs_time_alone(autojump_clock, vendor):
    """A question of whose answer nothing came is asked again on the next line."""
    vendor.replies += ["never said", "Here."]
    vendor.is_stalled = True
    async with calling(vendor) as caller:
        await vendor.hear("Hello?")
        await trio.sleep(0.5)
        vendor.is_stalled = False
        vendor.line.line.cut()
        await caller.quiet()
        assert caller.heard == "Here. "
    assert vendor.line.conversation == [("user", "Hello?"), ("assistant", "Here. ")]


async def test_a_line_that_breaks_in_mid_answer_is_an_error(autojump_clock, vendor):
    """What was half said fails, and the next turn works."""
    vendor.replies += [" ".join([LONG] * 40), "Here."]
    async with calling(vendor, errors=True) as caller:
        await vendor.hear("Count.")
        await caller.until(lambda caller: "two" in caller.heard)
        vendor.line.line.cut()
        await caller.quiet()
        assert "in mid-answer" in caller.events(AgentError)[0].message
        await vendor.hear("And now?")
        await caller.quiet()
        assert caller.heard.endswith("Here. ")


async def test_a_model_that_gives_nothing_is_an_error(autojump_clock, vendor):
    """A vendor that stalls fails the answer after twenty seconds, and is asked again."""
    vendor.replies += ["never said", "Here."]
    vendor.is_stalled = True
    async with calling(vendor, errors=True) as caller:
        await vendor.hear("Hello?")
        await trio.sleep(19.5)
        assert not caller.events(AgentError)
        await trio.sleep(1)
        assert len(caller.events(AgentError)) == 1
        vendor.is_stalled = False
        await vendor.hear("Hello?")
        await caller.quiet()
        assert caller.heard == "Here. "
    assert len(vendor.line.cancels) == 1


async def test_a_response_that_fails_is_an_error(autojump_clock, vendor):
    """A failed response fails its answer with the vendor's code, and no other."""
    vendor.replies += [{"type": "server_error", "code": "overloaded", "message": "x"}, "Here."]
    async with calling(vendor, errors=True) as caller:
        await vendor.hear("Hello?")
        failed = await caller.receives(AgentError)
        assert "overloaded" in failed.message
        await caller.quiet()
        await vendor.hear("Hello?")
        await caller.quiet()
        assert caller.heard == "Here. "


async def test_a_vendor_that_refuses_to_answer_is_an_error(autojump_clock, vendor):
    """A response that is refused each time is asked for four times more, within 4 s, and fails."""
    vendor.is_refusing = True
    async with calling(vendor, errors=True) as caller:
        await vendor.hear("Hello?")
        await trio.sleep(sum(REFUSED_WAITS_S) - 0.5)
        assert not caller.events(AgentError)
        await trio.sleep(1)
        (failed,) = caller.events(AgentError)
        assert "refused to respond" in failed.message
        assert len(vendor.line.of("response.create")) == 1 + len(REFUSED_WAITS_S)


async def test_a_session_that_is_refused_is_told(autojump_clock, vendor):
    """A wrong model deafens the call, says so, and each answer fails with the reason."""
    async with calling(vendor, errors=True) as caller:
        await vendor.refuse(vendor.line, {"event_id": "configure"}, "invalid_model")
        await caller.receives(ListeningFailed)
        await caller.says("hello")
        await caller.quiet()
        assert any("invalid_model" in e.message for e in caller.events(AgentError))


async def test_a_server_that_echoes_no_metadata_is_understood(autojump_clock, vendor):
    """Responses of a compatible server are identified by their order."""
    vendor.echoes_metadata = False
    vendor.replies += ["One.", "Two."]
    async with calling(vendor) as caller:
        await vendor.hear("First?")
        await caller.quiet()
        await vendor.hear("Second?")
        await caller.quiet()
        assert caller.heard == "One.\nTwo. "
    assert vendor.line.errors == []


async def test_garbage_is_left_out(autojump_clock, vendor):
    """Messages that nobody can read cost nothing."""
    vendor.replies += ["Sure."]
    async with calling(vendor) as caller:
        for garbage in ("", "no json", "[]", '{"type": 7}', '{"type": "response.created"}', "{}"):
            await vendor.line.line.say(garbage)
        await vendor.hear("Hi.")
        await caller.quiet()
        assert caller.heard == "Sure. "

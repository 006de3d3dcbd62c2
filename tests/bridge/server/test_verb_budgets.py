"""What one caller may take with verbs, words and JSON, and that a stop always gets through."""

import pytest
import trio
from structlog.testing import capture_logs

from bargein import Call, ChatNode
from bargein.client import ErrorMessage, State, Transcript, VerbReceipt
from bargein.events import AgentResponse, CustomReceived, UserTranscriptionReceived
from bargein.testing import ScriptedModel, calls
from bargein.tools import commit, tool


async def echo(call: Call) -> None:
    """Say what was said."""
    clerk = call.bridge(name="echo")
    clerk.on(UserTranscriptionReceived).map(
        lambda m: AgentResponse(content=m.event.content[:20])
    ).broadcast()


@tool
async def work() -> str:
    """Work for ten minutes."""
    await trio.sleep(600)
    return "done"


async def at_work(call: Call) -> None:
    """Work as soon as anything is said."""
    call.converse(ChatNode(ScriptedModel(then=calls("work")), tools=[work]))


def refusals(caller, words):
    """Return how many messages were refused with these words."""
    errors = [r.message for r in caller.received if isinstance(r.message, ErrorMessage)]
    return sum(words in error.message for error in errors)


async def test_stops_that_stop_nothing_fill_no_log(serving, autojump_clock):
    """Fifty at once, then ten a second; the others are refused, without a line each."""
    with capture_logs() as logs:
        async with serving(echo) as place, place.call(mode="text") as caller:
            for _ in range(300):
                caller.stop()
            await trio.sleep(1)
            assert place.server.metrics.over_budget["verbs"] == 250
            assert refusals(caller, "more than 10 verbs per second") > 50
            caller.write("hello")
            await caller.wait_for(Transcript, lambda m: m.role == "agent")
    assert len([line for line in logs if line["event"] == "verb_used"]) == 50


@tool
async def pay() -> str:
    """Pay, which takes four seconds that nothing cuts."""
    async with commit(deadline_s=5.0):
        await trio.sleep(4)
    return "paid"


async def test_stops_that_are_under_way_fill_no_log(serving, autojump_clock):
    """What takes effect already has its line, however often it is asked for."""

    async def answer(call: Call) -> None:
        call.converse(ChatNode(ScriptedModel(then=calls("pay")), tools=[pay]))

    with capture_logs() as logs:
        async with serving(answer) as place, place.call(mode="text") as caller:
            caller.write("pay")
            await trio.sleep(1)
            for _ in range(300):
                caller.stop()
            await trio.sleep(1)
    assert len([line for line in logs if line["event"] == "verb_used"]) < 5


@tool
async def be_stubborn() -> str:
    """Work for twenty seconds that nothing cuts."""
    with trio.CancelScope(shield=True):
        await trio.sleep(20)
    return "done"


@pytest.mark.parametrize("how", ["stop", "emergency_stop", "cancel"])
async def test_stops_that_are_under_way_count(serving, autojump_clock, how):
    """The first stops; the same again has the budget of verbs, and a stronger one gets through."""

    async def answer(call: Call) -> None:
        call.converse(ChatNode(ScriptedModel(then=calls("be_stubborn")), tools=[be_stubborn]))

    async with serving(answer) as place, place.call(mode="text") as caller:
        caller.write("work")
        await trio.sleep(0.5)
        for _ in range(150):
            caller.stop() if how == "stop" else caller.control(how)
        await trio.sleep(0.01)
        assert place.server.metrics.over_budget["verbs"] >= 95
        if how == "cancel":
            caller.control("emergency_stop")
            with trio.fail_after(5):
                receipt = await caller.wait_for(VerbReceipt, lambda m: m.verb == "emergency_stop")
            assert receipt.message.accepted


async def test_a_stop_that_stops_something_gets_through(serving, autojump_clock):
    """However many verbs came before it."""
    async with serving(at_work) as place, place.call(mode="text") as caller:
        for _ in range(150):
            caller.control("pause")
        caller.write("work")
        await trio.sleep(0.5)
        for _ in range(100):
            caller.control("pause")
        await trio.sleep(0.05)
        caller.control("cancel")
        receipt = await caller.wait_for(VerbReceipt, lambda m: m.verb == "cancel")
        assert receipt.message.accepted
        assert place.server.metrics.over_budget["verbs"] > 0


async def test_an_answer_to_no_question_counts_as_a_verb(serving, autojump_clock):
    """Neither guessing the ids of questions nor of permissions fills the log."""
    with capture_logs() as logs:
        async with serving(echo) as place, place.call(mode="text") as caller:
            for number in range(100):
                caller.answer(f"question_{number}", "yes")
                caller.respond(f"call_{number}", allow=True)
            await trio.sleep(1)
            assert place.server.metrics.over_budget["verbs"] >= 140
    assert len([line for line in logs if "stale" in line["event"]]) <= 60


async def test_notes_count_as_turns(serving, autojump_clock):
    """What a resume says to the model is kept, so it has the budget of texts."""
    async with serving(at_work) as place, place.call(mode="text") as caller:
        caller.write("work")
        await trio.sleep(1)
        for number in range(20):
            caller.control("pause")
            caller.control("resume", text=f"note {number}")
        await trio.sleep(1)
        assert place.server.metrics.over_budget["turns"] >= 8
        assert refusals(caller, "more than 2 turns per second") >= 8


async def test_words_have_a_budget(serving, autojump_clock):
    """Fifty thousand characters at once, then two hundred a second: more than anybody says."""
    async with serving(echo) as place, place.call(mode="text") as caller:
        for _ in range(6):
            caller.write("x" * 9_999)
        await trio.sleep(1)
        assert refusals(caller, "more than 200 characters per second") == 1
        caller.write("y" * 150)
        await caller.wait_for(Transcript, lambda m: m.role == "agent" and "y" in m.text)
        for _ in range(60):
            await trio.sleep(1)
            caller.write("x" * 9_999)
        assert place.server.metrics.over_budget["turns"] >= 58


async def test_a_refusal_says_which_request_it_answers(serving, autojump_clock):
    """So a page no longer waits for its receipt."""
    async with serving(echo) as place, place.call(mode="text") as caller:
        for number in range(60):
            caller.send_raw(f'{{"type":"control","verb":"cancel","request":"verb-{number}"}}')
        refused = await caller.wait_for(ErrorMessage, lambda m: m.code == "rate_limited")
        assert refused.message.request == "verb-50"
        assert place.server.metrics.over_budget["verbs"] == 10


async def test_long_messages_are_not_even_read(serving, autojump_clock):
    """A megabyte at once, then two of the greatest length a second; reading JSON takes time."""
    long = '{"type":"custom","metadata":{"a":["' + "x" * 65_400 + '"]}}'
    unreadable = "{" * 65_000
    got = []

    async def answer(call: Call) -> None:
        call.router.observe(CustomReceived, got.append)
        await at_work(call)

    async with serving(answer) as place, place.call(mode="text") as caller:
        caller.write("work")
        await trio.sleep(1)
        for _ in range(40):
            caller.send_raw(long)
            await trio.sleep(0.01)
        caller.send_raw(unreadable)
        await trio.sleep(1)
        assert 15 <= len(got) <= 17
        assert refusals(caller, "more than 130000 bytes per second") >= 24
        assert refusals(caller, "not JSON") == 0
        caller.stop()
        await caller.wait_for(State, lambda m: m.state == "idle")
        await trio.sleep(2)
        caller.send_raw(long)
        await trio.sleep(1)
        assert len(got) <= 19
        assert place.server.metrics.errors["bad_json"] == 0

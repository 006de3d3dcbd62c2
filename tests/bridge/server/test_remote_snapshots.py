"""Descriptions and snapshots of a call, as a client of the server gets them."""

import itertools

import trio

from bargein import Call, Caps, ChatNode
from bargein.client import Description, SnapshotMessage, State, VerbSettled
from bargein.control import VERBS
from bargein.events import UserStartedSpeaking, UserTranscriptionReceived
from bargein.llm import TextDelta, ToolCallRequest, Usage
from bargein.protocol import AskedPermission, CapUse, ToolAtWork, VerbNow
from bargein.tools import tool

from .remote_agents import asker, cleaner, of, soon


async def test_a_description_and_a_snapshot_tell_the_moment(serving, autojump_clock):
    """Both show what runs; the description is that of the handle."""
    calls = []

    async def answer(call: Call) -> None:
        calls.append(call)
        await cleaner(call)

    async with serving(answer) as place, place.call(mode="text") as caller:
        await trio.sleep(1)
        caller.write("clean")
        await trio.sleep(3)
        asked = caller.ask_description("cancel")
        text = calls[0].handle.describe("cancel")
        assert "tidy_up will end in 2 s" in text
        description = (await soon(caller, Description)).message
        assert description == Description(request=asked, verb="cancel", text=text, possible=True)
        asked = caller.ask_snapshot()
        now = (await soon(caller, SnapshotMessage)).message
        assert (now.request, now.answer, now.text, now.backgrounded) == (
            asked,
            1,
            "Let me see. ",
            0,
        )
        assert now.state == of(caller, State)[-1].state
        assert now.number == of(caller, State)[-1].number
        assert (now.total_ms, now.active_ms) == (3000, 3000)
        assert now.tools == (
            ToolAtWork(id="t1", name="tidy_up", policy="finish", elapsed_ms=3000),
            ToolAtWork(id="t2", name="tidy_up", policy="cancel", elapsed_ms=3000),
        )
        assert (now.permissions, now.caps) == ((), {})
        assert now.verbs["cancel"] == VerbNow(text=text, possible=True)
        assert not now.verbs["resume"].possible
        assert "nothing is paused" in now.verbs["resume"].text
        assert set(now.verbs) == set(VERBS) - {"shutdown"}


async def test_a_snapshot_shows_open_questions_and_caps(serving, autojump_clock):
    """A question comes with what it is about, and each cap with what is used of it."""

    async def answer(call: Call) -> None:
        await asker(call)
        answers = call.control.target
        call.control.target = lambda: with_caps(answers())

    def with_caps(answer):
        if answer is not None:
            answer.caps = lambda: {"steps": (2, 5)}
        return answer

    async with serving(answer) as place, place.call(mode="text") as caller:
        caller.write("send it")
        await soon(caller, State, lambda m: m.state == "waiting_permission")
        caller.ask_snapshot()
        now = (await soon(caller, SnapshotMessage)).message
        assert now.permissions == (
            AskedPermission(id="q1", name="send_mail", arguments={"to": "Ada"}),
        )
        assert now.caps == {"steps": CapUse(used=2, limit=5)}


@tool(read_only=True)
async def find_flight(city: str) -> str:
    """Find a flight."""
    await trio.sleep(3)
    return f"flight 7 goes to {city}"


@tool
async def read_rules() -> str:
    """Read the rules."""
    await trio.sleep(1)
    raise OSError("there are none")


class TwoTools:
    """A model that thinks for a second, then calls two tools, then answers in one word."""

    async def stream(self, messages, *, tools=()):
        await trio.sleep(1)
        if any(message["role"] == "tool" for message in messages):
            yield TextDelta("Done.")
        else:
            yield ToolCallRequest(id="c1", name="find_flight", arguments={"city": "Rome"}, raw="")
            yield ToolCallRequest(id="c2", name="read_rules", arguments={}, raw="")
        yield Usage()


async def flights(call: Call) -> None:
    """Calls two tools side by side, whatever is said."""
    node = ChatNode(TwoTools(), tools=[find_flight, read_rules], caps=Caps(tokens=100))
    agent = call.bridge(node, name="flights")
    route = agent.on(UserTranscriptionReceived)
    route.interrupt_on(UserStartedSpeaking).stream(node.generate).broadcast()


def steps_of(message):
    """What a snapshot says of the steps, in short."""
    return [(one.tool, one.state, one.elapsed_ms) for one in message.step_list]


async def test_a_snapshot_lists_the_steps(serving, autojump_clock):
    """Each step stands there in order, with what became of it and how long it took."""
    async with serving(flights) as place, place.call(mode="text") as caller:
        caller.write("Rome")
        await trio.sleep(0.5)
        caller.ask_snapshot()
        await trio.sleep(3)
        caller.ask_snapshot()
        await trio.sleep(1)
        caller.ask_snapshot()
        await trio.sleep(0.1)
        first, second, third = of(caller, SnapshotMessage)
        assert steps_of(first) == [("", "running", 500)]
        assert steps_of(second) == [
            ("", "done", 1000),
            ("find_flight", "running", 2500),
            ("read_rules", "failed", 1000),
        ]
        assert second.step_list[1].id == "c1"
        assert steps_of(third)[1:] == [
            ("find_flight", "done", 3000),
            ("read_rules", "failed", 1000),
            ("", "running", 500),
        ]


async def test_a_follower_is_told_of_each_change_once(serving, autojump_clock):
    """Snapshots come unasked when something changes, and never for what only grows."""
    async with serving(flights) as place, place.call(mode="text") as caller:
        request = caller.ask_snapshot(follow=True)
        await trio.sleep(0.1)
        caller.write("Rome")
        await trio.sleep(20)
        told = of(caller, SnapshotMessage)
        assert {message.request for message in told} == {request}
        assert all(a != b for a, b in itertools.pairwise(map(without_times, told)))
        shown = [tuple(state for _, state, _ in steps_of(message)) for message in told]
        short = [steps for steps, _ in itertools.groupby(shown)]
        assert short == [
            (),
            ("running",),
            ("done",),
            ("done", "running"),
            ("done", "running", "running"),
            ("done", "running", "failed"),
            ("done", "done", "failed"),
            ("done", "done", "failed", "running"),
            (),
        ]
        assert told[-1].state == "idle"
        assert not told[-1].verbs["cancel"].possible


def without_times(shown):
    """Return what changes but by growing."""
    still = {"elapsed_ms": 0.0, "active_ms": 0.0, "total_ms": 0.0, "text": ""}
    tools = [one.model_copy(update={"elapsed_ms": 0.0}) for one in shown.tools]
    steps = [one.model_copy(update={"elapsed_ms": 0.0}) for one in shown.step_list]
    return shown.model_copy(update={**still, "tools": tools, "step_list": steps})


async def test_who_follows_no_more_is_told_no_more(serving, autojump_clock):
    """The latest question holds: one that does not follow ends the following."""
    async with serving(flights) as place, place.call(mode="text") as caller:
        caller.ask_snapshot(follow=True)
        again = caller.ask_snapshot(follow=True)
        last = caller.ask_snapshot()
        caller.write("Rome")
        await trio.sleep(20)
        assert [m.request for m in of(caller, SnapshotMessage)] == [last - 2, again, last]


async def test_a_cut_step_is_stopped(serving, autojump_clock):
    """What an interrupt has ended reads so, in the last snapshot that shows the answer."""
    calls = []

    async def answer(call: Call) -> None:
        calls.append(call)
        await flights(call)

    async with serving(answer) as place, place.call(mode="text") as caller:
        caller.write("Rome")
        await trio.sleep(2.5)
        answer = calls[0].control.target()
        caller.control("cancel")
        await soon(caller, VerbSettled)
        assert [step.state for step in answer.step_list] == ["done", "stopped", "failed"]

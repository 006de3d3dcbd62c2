"""What a client sees of its call: over whole calls, and by the watcher alone when it is slow."""

import pytest
import trio
import trio.testing

from bargein import Call
from bargein.client import NetworkCaller, Seen, Watching
from bargein.events import (
    AgentResponse,
    ControlRequested,
    LogMetric,
    ToolCall,
    ToolResult,
    TurnDecided,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.server import Limits

QUEUE_LIMIT = 1024
LAST_LIMIT = 64


AGENT = "storyteller"
SECRET = "my pin is 4321"


async def storyteller(call: Call) -> None:
    """Tells something long; the caller's voice cuts it once a second has passed."""
    agent = call.bridge(name="storyteller")
    began_s = trio.current_time()

    async def tell(message):
        for n in range(10):
            yield AgentResponse(content=f"Chapter {n}. ")
            await trio.sleep(0.3)

    def late(message):
        return message.at_s - began_s > 1.0

    (
        agent.on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking, condition=late)
        .stream(tell)
        .broadcast()
    )


def seen(caller: NetworkCaller, prefix: str = "") -> list[Seen]:
    """What the caller was told, by the beginning of its name."""
    told = [each.message for each in caller.received if isinstance(each.message, Seen)]
    return [each for each in told if each.name.startswith(prefix)]


async def watch(caller: NetworkCaller, on: bool = True) -> Watching:
    """Ask, and return the answer."""
    request = caller.watch(on)
    answer = await caller.wait_for(Watching, lambda m: m.request == request)
    return answer.message


async def test_nothing_is_told_to_who_does_not_ask(serving, autojump_clock):
    """Without the question, a call sends what it always sent."""
    async with serving(storyteller) as place, place.call(mode="text") as caller:
        caller.write("hello")
        await trio.sleep(10)
        assert seen(caller) == []
        assert caller.hello.watch == "events"


async def test_every_event_is_told_with_its_time(serving, autojump_clock):
    """Who asks is told of each event, its source, its answer and when it was, in order."""
    async with serving(storyteller) as place, place.call(mode="text") as caller:
        await trio.sleep(2.0)
        answer = await watch(caller)
        assert (answer.on, answer.words) == (True, False)
        assert answer.at_s == pytest.approx(2.0, abs=0.01)
        caller.write("hello")
        await trio.sleep(1.0)
        told = seen(caller)
        happened = [one.name for one in told if not one.name.startswith("route.")]
        assert happened[:2] == ["user.started_speaking", "call.state_changed"]
        spoken = [one for one in told if one.name == "agent.response"]
        assert [one.at_s for one in spoken] == pytest.approx([2.0, 2.3, 2.6, 2.9], abs=0.01)
        assert {(one.source, one.answer) for one in spoken} == {("storyteller", 1)}
        # What an event causes may be told under a later time, never under an earlier one.
        assert [one.at_s for one in told] == sorted(one.at_s for one in told)


async def test_a_cut_is_explained(serving, autojump_clock):
    """Why an event did or did not cut is told after that event, with the rule and the route."""
    async with serving(storyteller) as place, place.call(mode="text") as caller:
        await watch(caller)
        caller.write("tell")  # nothing is running
        await trio.sleep(0.5)
        caller.write("too early")  # the condition says no
        await trio.sleep(1.0)
        caller.write("stop")
        await trio.sleep(0.1)
        told = seen(caller)
        causes = {one.id: n for n, one in enumerate(told) if one.name == "user.started_speaking"}
        asked = [one for one in seen(caller, "route.") if one.id in causes and one.source == AGENT]
        assert [one.name for one in asked] == ["route.idle", "route.gated", "route.cut"]
        idle, gated, cut = asked
        assert "nothing was running" in idle.data["why"]
        assert "the condition was False" in gated.data["why"]
        assert "interrupt_on(UserStartedSpeaking" in cut.data["why"]
        assert cut.data["event"] == "user.started_speaking"
        assert "on(UserStoppedSpeaking)" in cut.data["route"]
        assert all(told.index(one) > causes[one.id] for one in asked)


async def test_what_two_chains_made_of_an_event_is_told_after_it(serving, autojump_clock):
    """One chain is cut and the other one is idle: both are explained after the event."""

    async def answer(call: Call) -> None:
        agent = call.bridge(name="clerk")
        for event in (UserStoppedSpeaking, ToolResult):
            agent.on(event).interrupt_on(UserStartedSpeaking).stream(talks).broadcast()

    async def talks(message):
        yield AgentResponse(content="Well, ")
        await trio.sleep_forever()

    async with serving(answer) as place, place.call(mode="text") as caller:
        await watch(caller)
        caller.write("tell")
        await trio.sleep(0.5)
        caller.write("stop")
        await trio.sleep(0.1)
        told = [one for one in seen(caller) if one.data.get("event") != "user.stopped_speaking"]
        cause = [one for one in told if one.name == "user.started_speaking"][-1]
        names = [one.name for one in told if one.id == cause.id]
        assert sorted(names[1:]) == ["route.cut", "route.idle"]
        assert names[0] == "user.started_speaking"


async def test_no_words_unless_the_server_allows_them(serving, autojump_clock):
    """By default nothing that was said, typed or given to a tool is in what is seen."""

    async def answer(call: Call) -> None:
        agent = call.bridge(name="clerk")
        agent.on(UserTranscriptionReceived).map(
            lambda m: ToolCall(name="pay", id="t1", arguments={"text": m.event.content})
        ).broadcast()

    async with serving(answer) as place, place.call(mode="text") as caller:
        await watch(caller)
        caller.write(SECRET)
        caller.press("4")
        await trio.sleep(1.0)
        told = seen(caller)
        assert all(SECRET not in one.model_dump_json() for one in told)
        by_name = {one.name: one for one in told}
        assert by_name["agent.tool_call"].data == {"name": "pay", "id": "t1"}
        assert by_name["agent.tool_call"].hidden == ("arguments",)
        assert by_name["user.transcription"].hidden == ("content",)
        assert by_name["user.dtmf"].data == {}


async def test_words_where_the_server_allows_them(serving, autojump_clock):
    """With ``watch="words"`` all fields are there."""
    limits = Limits(watch="words")
    async with serving(storyteller, limits=limits) as place, place.call(mode="text") as caller:
        assert caller.hello.watch == "words"
        answer = await watch(caller)
        assert answer.words is True
        caller.write(SECRET)
        await trio.sleep(0.1)
        [typed] = seen(caller, "user.transcription")
        assert typed.data["content"] == SECRET
        assert typed.hidden is None


async def test_a_server_may_refuse(serving, autojump_clock):
    """With ``watch="off"`` the answer is no, and nothing follows."""
    limits = Limits(watch="off")
    async with serving(storyteller, limits=limits) as place, place.call(mode="text") as caller:
        answer = await watch(caller)
        assert (answer.on, answer.words) == (False, False)
        caller.write("hello")
        await trio.sleep(5)
        assert seen(caller) == []


async def test_watching_can_end_and_begin_again(serving, autojump_clock):
    """Nothing is told between an end and the next beginning, and nothing twice after it."""
    async with serving(storyteller) as place, place.call(mode="text") as caller:
        for _ in range(2):
            await watch(caller)
        assert (await watch(caller, on=False)).on is False
        caller.write("hello")
        await trio.sleep(1)
        assert seen(caller) == []
        await watch(caller)
        caller.press("1")
        await trio.sleep(1)
        assert len(seen(caller, "user.dtmf")) == 1


async def test_the_last_events_come_before_the_end(serving, autojump_clock):
    """What happens as the call ends is told, and ``ended`` is still the last message."""
    async with serving(storyteller) as place, place.call(mode="text") as caller:
        await watch(caller)
        caller.write("tell")
        await trio.sleep(0.5)
        caller.hang_up()
        with trio.fail_after(60):
            await caller.ended.wait()
        names = [one.name for one in seen(caller)]
        assert "call.answer_ended" in names
        assert "call.ended" in names
        assert caller.received[-1].message.type == "ended"


async def test_audio_is_never_seen(serving, autojump_clock):
    """Frames of the microphone and of the voice are no part of it."""
    async with serving(storyteller, voice=True) as place, place.call() as caller:
        await watch(caller)
        caller.write("tell")
        await trio.sleep(2.0)
        assert seen(caller, "agent.response") != []
        names = {one.name for one in seen(caller)}
        assert names.isdisjoint({"user.audio", "agent.audio"})


async def test_decisions_about_turns_and_numbers_are_seen(serving, autojump_clock):
    """What a turn taker decides, and every metric, comes with its values."""
    held: list[Call] = []

    async def answer(call: Call) -> None:
        held.append(call)

    async with serving(answer) as place, place.call(mode="text") as caller:
        await watch(caller)
        values = {"voiced_s": 0.21, "min_duration_s": 0.5}
        held[0].publish(
            TurnDecided(about="barge_in", decision="noise", rule="min_duration_s", values=values),
            source="ears",
        )
        held[0].publish(
            LogMetric(name="listening.recogniser_s", value=0.2, unit="s"), source="ears"
        )
        await trio.sleep(0.1)
        [decided] = seen(caller, "turn.decided")
        assert decided.data["values"] == values
        assert decided.source == "ears"
        [metric] = seen(caller, "call.metric")
        assert metric.data == {"name": "listening.recogniser_s", "value": 0.2, "unit": "s"}


async def test_a_cause_is_told_before_what_follows_from_it(serving, autojump_clock):
    """An event that leads to another at once comes first, also where no chain says why it acted."""

    async def answer(call: Call) -> None:
        counter = call.bridge(name="counter", is_agent=False)
        for event in (UserStartedSpeaking, AgentResponse, ControlRequested):
            counter.on(event).map(count).broadcast()
        await storyteller(call)

    def count(message):
        return LogMetric(name=message.alias, value=message.id)

    async with serving(answer) as place, place.call(mode="text") as caller:
        await watch(caller)
        caller.write("tell")
        await trio.sleep(1.5)
        caller.write("stop")
        await trio.sleep(0.5)
        caller.control("cancel")
        await trio.sleep(0.5)
        told = [one.id for one in seen(caller) if not one.name.startswith("route.")]
        counted = seen(caller, "call.metric")
        assert {one.data["name"] for one in counted} == {
            "user.started_speaking", "agent.response", "call.control",
        }  # fmt: skip
        assert all(told.index(one.data["value"]) < told.index(one.id) for one in counted)

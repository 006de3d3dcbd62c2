"""An answer that is moved to the background: it is a job, and verbs and failures reach it there."""

from __future__ import annotations

import pytest
import trio

from bargein import ChatNode, open_agent
from bargein.llm import TextDelta, Usage

from .reporting import Teller, asks, report


class Writer:
    """A model that writes a word each second, six in all, and then reports what came back."""

    def __init__(self):
        self.asked = []
        self.written = []

    async def stream(self, messages, *, tools=()):
        self.asked.append(messages)
        if len(self.asked) > 1:
            yield TextDelta("And that is it.")
            return
        for word in ("one", "two", "three", "four", "five", "six"):
            self.written.append(word)
            yield TextDelta(f"{word} ")
            await trio.sleep(1)
        yield Usage()


async def test_an_answer_in_the_background_is_a_job(autojump_clock):
    """It is in the node's jobs and in the snapshot; cancelling it stops its model at once."""
    node = ChatNode(model := Writer())
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.background()
        (job,) = node.jobs
        assert (job.id, job.status, job.result) == ("answer_1", "running", None)
        assert job.usage["steps"] == (1, 100)
        assert job.describe() == f"Cancel: {job.name} is stopped."
        assert [(one.id, one.elapsed_s) for one in handle.snapshot().tools] == [("answer_1", 1.5)]
        assert handle.snapshot().backgrounded == 1
        job.cancel()
        result = await job.wait()
        assert (job.status, result.content) == ("cancelled", "")
        assert job.describe() == "Cancel: nothing would happen; the job is over."
        await trio.sleep(20)
        assert model.written == ["one", "two"]
        assert len(model.asked) == 1, "nobody speaks of a job that was stopped"
        assert (handle.snapshot().state, handle.snapshot().backgrounded) == ("idle", 0)


@pytest.mark.parametrize("verb", ["cancel", "emergency_stop", "shutdown"])
async def test_a_verb_ends_an_answer_in_the_background(autojump_clock, verb):
    """With no answer in front its model stops in the step of the verb, and the receipt says so."""
    node = ChatNode(model := Writer())
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.background()
        await trio.sleep(0.1)
        assert f"{node.jobs[0].name} is stopped" in handle.describe(verb)
        receipt = getattr(handle, verb)()
        assert [one.id for one in receipt.stopped] == ["answer_1"]
        await receipt.settled
        assert node.jobs[0].status == "finished"
        await trio.sleep(20)
        assert model.written == ["one", "two"]


async def test_a_cancel_of_another_answer_leaves_the_background_alone(autojump_clock):
    """A cancel means the answer in the foreground first, then the one in the background."""
    writing = Writer()

    class Both(Writer):
        async def stream(self, messages, *, tools=()):
            self.asked.append(messages)
            model = writing if len(self.asked) == 1 else Teller(thinks_s=5)
            async for piece in model.stream(messages, tools=tools):
                yield piece

    node = ChatNode(Both())
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.background()
        handle.send_input("and you?")
        await trio.sleep(1)
        receipt = handle.cancel()
        assert (receipt.answer, receipt.stopped) == (2, ())
        await receipt.settled
        assert node.jobs[0].status == "running"
        await handle.cancel().settled
        assert node.jobs[0].status == "finished"
        await trio.sleep(20)
        assert writing.written == ["one", "two", "three"]


async def test_a_cancel_with_no_answer_leaves_detached_tools(autojump_clock):
    """A tool with the policy detach goes on, whether it went alone or with its answer."""
    node = ChatNode(Teller(asks("report")), tools=[report])
    async with open_agent(node) as handle:
        handle.send_input("a report, please")
        await trio.sleep(1)
        handle.background()
        await trio.sleep(0.1)
        assert handle.cancel().accepted
        await trio.sleep(0.1)
        assert [(job.id, job.status) for job in node.jobs] == [
            ("answer_1", "finished"),
            ("report", "running"),
        ]
        assert handle.cancel().reason == "nothing is running"
        await trio.sleep(10)
        assert node.jobs[1].result.content == "report of 5 seconds"


async def test_an_answer_that_fails_in_the_background_is_told(autojump_clock):
    """Its result says that it failed: nothing that went away is silent."""

    class Broken(Writer):
        async def stream(self, messages, *, tools=()):
            self.asked.append(messages)
            await trio.sleep(2)
            if len(self.asked) == 1:
                raise OSError("no network")
            yield TextDelta("It failed.")

    node = ChatNode(model := Broken())
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(1)
        handle.background()
        await trio.sleep(20)
        (job,) = node.jobs
        assert (job.status, job.result.error, job.result.outcome) == (
            "finished",
            True,
            "effect_unknown",
        )
        assert len(model.asked) == 2

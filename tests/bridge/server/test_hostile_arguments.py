"""What one caller's model writes hides nothing of another call, and reaches whoever decides."""

import json

import pytest
import trio

from bargein import App, ChatNode, current_run
from bargein.client import OtherEvent, Spoken, Transcript, open_caller
from bargein.events import AgentResponse, ToolResult, UserTranscriptionReceived
from bargein.llm import TextDelta, ToolCallRequest
from bargein.server import open_server, sign_token
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import ToolError, tool
from bargein.websocket import open_websocket

SECRET = "a secret of thirty-two bytes or more"


def deep(levels):
    """Return a value within as many objects."""
    value = 1
    for _ in range(levels):
        value = {"a": value}
    return value


HOSTILE = {
    "surrogate": {"note": "a\ud800b"},
    "key": {"\udfff": 1},
    "control": {"note": "\x1b[2J\x00\x9b31m"},
    "large": {"note": "x" * 300_000},
    "wide": {"note": "é" * 300_000},
    "quotes": {"note": '"' * 300_000},
    "many": {f"k{i}": "x" * 100 for i in range(3_000)},
    "lists": {"note": [[[]] * 300] * 300},
    "nested": {"note": deep(60)},
    "too_deep": {"note": deep(300)},
    "object": {"note": object()},
    "number": {"note": 10**3000},
    "digits": {"note": 10**6000},
    "float": {"note": float("nan")},
}


def asker(by, given):
    """Answer calls with a tool's question for permission: a hostile one to who says evil."""

    async def answer(call):
        bridge = call.bridge(name="payer")

        async def asks(message):
            arguments = given if message.event.content == "evil" else {"euros": 7}
            verdict = await call.permissions.ask("q", "pay", arguments, current_run(), by=by)
            yield AgentResponse(content=f"It is {verdict}.")

        bridge.on(UserTranscriptionReceived).stream(asks).broadcast()

    return answer


def bearer(user, **options):
    """Return the headers of a user, and the token."""
    token = sign_token(SECRET, user, lasts_s=60, **options)
    return {"Authorization": f"Bearer {token}"}, token


@pytest.mark.proof
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_question_that_is_hard_to_show_hides_no_other(name):
    """Operators get both questions, in any order of coming, and may answer both."""
    boss, _ = bearer("boss", rights=["operator"])
    _, eve = bearer("eve")
    _, ada = bearer("ada")
    with trio.fail_after(30):
        async with (
            open_server(App(asker("operator", HOSTILE[name])), port=0, token_secret=SECRET) as at,
            open_websocket(f"ws://127.0.0.1:{at.port}/watch", headers=boss) as watch,
            open_caller(at.url, mode="text", token=eve) as evil,
            open_caller(at.url, mode="text", token=ada) as good,
        ):
            evil.write("evil")
            raw = await watch.receive()
            assert len(raw.encode()) <= 5_000
            first = json.loads(raw)
            good.write("pay")
            second = json.loads(await watch.receive())
            assert (first["user"], second["user"]) == ("eve", "ada")
            assert second["arguments"] == {"euros": 7}
            async with open_websocket(f"ws://127.0.0.1:{at.port}/watch", headers=boss) as late:
                seen = [json.loads(await late.receive())["user"] for _ in range(2)]
                assert sorted(seen) == ["ada", "eve"]
            for question, caller in ((first, evil), (second, good)):
                reply = {"type": "permission", "call": question["call"], "id": "q", "allow": True}
                await watch.send(json.dumps(reply))
                await caller.wait_for(Spoken, lambda m: "allowed" in m.text)


@pytest.mark.proof
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_question_to_the_caller_arrives(name):
    """The caller is asked, whatever the arguments are, and the call goes on."""
    with trio.fail_after(30):
        async with (
            open_server(App(asker("caller", HOSTILE[name])), port=0) as at,
            open_caller(at.url, mode="text") as caller,
        ):
            caller.write("evil")
            asked = await caller.wait_for(OtherEvent, lambda m: "permission" in m.name)
            assert len(json.dumps(asked.message.data, ensure_ascii=False).encode()) <= 5_000
            caller.respond("q", True)
            await caller.wait_for(Spoken, lambda m: "allowed" in m.text)


async def test_an_operator_gets_the_rest_of_the_arguments_on_request():
    """The parts of a long text make up the whole."""
    boss, _ = bearer("boss", rights=["operator"])
    _, eve = bearer("eve")
    large = asker("operator", HOSTILE["large"])
    with trio.fail_after(30):
        async with (
            open_server(App(large), port=0, token_secret=SECRET) as at,
            open_websocket(f"ws://127.0.0.1:{at.port}/watch", headers=boss) as watch,
            open_caller(at.url, mode="text", token=eve) as evil,
        ):
            evil.write("evil")
            question = json.loads(await watch.receive())
            whole = ""
            while True:
                ask = {"type": "arguments", "call": question["call"], "id": "q", "at": len(whole)}
                await watch.send(json.dumps(ask))
                part = json.loads(await watch.receive())
                whole += part["text"]
                if len(whole) >= part["length"]:
                    break
            assert json.loads(whole) == HOSTILE["large"]
            assert question["size"] == len(whole)


async def test_a_question_that_no_answer_can_name_is_denied():
    """Its id is too long: it is denied and logged, and the next one is shown."""
    boss, _ = bearer("boss", rights=["operator"])
    _, eve = bearer("eve")

    async def answer(call):
        bridge = call.bridge(name="payer")

        async def asks(message):
            for id in ("x" * 1000, "q2"):
                verdict = await call.permissions.ask(id, "pay", {}, current_run(), by="operator")
                yield AgentResponse(content=f"It is {verdict}. ")

        bridge.on(UserTranscriptionReceived).stream(asks).broadcast()

    with trio.fail_after(30):
        async with (
            open_server(App(answer), port=0, token_secret=SECRET) as at,
            open_websocket(f"ws://127.0.0.1:{at.port}/watch", headers=boss) as watch,
            open_caller(at.url, mode="text", token=eve) as evil,
        ):
            evil.write("pay")
            shown = json.loads(await watch.receive())
            while shown["type"] != "question":
                shown = json.loads(await watch.receive())
            assert shown["id"] == "q2"


async def test_words_that_utf_8_cannot_hold_are_said_and_shown(serving, autojump_clock):
    """A model's lone surrogates and control characters are replaced, and nothing is dropped."""

    async def answer(call):
        call.converse(ChatNode(ScriptedModel([TextDelta("a\ud800b \x1b[2J\x07 end.")])))

    async with serving(answer) as place, place.call(mode="text") as caller:
        caller.write("go")
        told = await caller.wait_for(Transcript, lambda m: m.role == "agent")
        assert "\ufffd" in told.message.text
        await caller.wait_for(Spoken, lambda m: "end" in m.text)


@pytest.mark.parametrize("nesting", [65, 300, 5000])
async def test_arguments_that_are_nested_too_deep_are_the_models_mistake(autojump_clock, nesting):
    """The tool does not run, and the model is told."""

    @tool
    async def note(what: object = None) -> str:
        """Note something."""
        return "noted"

    async def answer(call):
        asks = ToolCallRequest("c1", "note", {"what": deep(nesting)}, "")
        call.converse(ChatNode(ScriptedModel(asks, "Done."), tools=[note]))

    async with open_call(answer, audio=False) as caller:
        await caller.says("go")
        result = await caller.receives(ToolResult)
        assert result.outcome == "not_started"
        assert "must be one JSON object" in result.content


async def test_only_a_tool_error_tells_the_model_its_text(autojump_clock):
    """Of any other exception a model gets the class."""

    @tool
    async def told() -> str:
        """Fail."""
        raise ToolError("No order 17.")

    @tool
    async def untold() -> str:
        """Fail."""
        raise KeyError("password=hunter2")

    async def answer(call):
        model = ScriptedModel(calls("told"), calls("untold"), "Done.")
        call.converse(ChatNode(model, tools=[told, untold]))

    async with open_call(answer, audio=False, expect_errors=KeyError) as caller:
        await caller.says("go")
        await caller.quiet()
        assert [one.content for one in caller.events(ToolResult)] == ["No order 17.", "KeyError"]

"""Tools whose permission is the operator's: the caller is never asked."""

import json

import pytest
import trio

from bargein import App, ChatNode, current_run
from bargein.client import (
    ErrorMessage,
    OtherEvent,
    Seen,
    Spoken,
    VerbReceipt,
    VerbSettled,
    open_caller,
)
from bargein.events import (
    AgentResponse,
    JobFinished,
    PermissionAnswered,
    PermissionRequested,
    ToolCall,
    ToolOutput,
    ToolProgress,
    ToolResult,
    UserTranscriptionReceived,
)
from bargein.llm import ToolCallRequest
from bargein.protocol import encode
from bargein.server import Limits, open_server, sign_token
from bargein.testing import ScriptedModel, calls
from bargein.tools import ToolContext, finish, tool
from bargein.websocket import open_websocket

MONEY = [ToolCall, ToolProgress, ToolOutput, ToolResult, JobFinished]
SECRET = "a secret of thirty-two bytes or more"


async def payer(call):
    """Asks the operator whether it may pay, whatever is said."""
    agent = call.bridge(name="payer")

    async def pay(message):
        verdict = await call.permissions.ask(
            "q1", "pay", {"euros": 7}, current_run(), by="operator"
        )
        yield AgentResponse(content=f"It is {verdict}.")

    agent.on(UserTranscriptionReceived).stream(pay).broadcast()


@pytest.mark.parametrize(
    ("verdict", "word"), [(True, "allowed"), (False, "denied"), ("yes", "denied"), (None, "denied")]
)
async def test_the_app_answers_for_the_operator(serving, autojump_clock, verdict, word):
    """A function of the app decides, and only `True` allows."""

    async def operator(call, question):
        await trio.sleep(1)
        assert (question.name, question.arguments) == ("pay", {"euros": 7})
        return verdict

    async with (
        serving(payer, app={"operator": operator}) as place,
        place.call(mode="text") as caller,
    ):
        caller.write("pay")
        await caller.wait_for(Spoken, lambda m: word in m.text)


async def test_a_function_that_raises_denies(serving, autojump_clock):
    """What the app's code raises is no permission, and the call goes on."""

    def operator(call, question):
        raise SystemExit(3)

    async with (
        serving(payer, app={"operator": operator}) as place,
        place.call(mode="text") as caller,
    ):
        caller.write("pay")
        await caller.wait_for(Spoken, lambda m: "denied" in m.text)


async def test_a_caller_is_never_asked_and_cannot_answer(serving, autojump_clock):
    """It hears of no question, sees none in its snapshots, and its answer is forbidden."""
    async with serving(payer) as place, place.call(mode="text") as caller:
        caller.write("pay")
        await trio.sleep(1)
        caller.ask_snapshot()
        caller.respond("q1", True)
        refused = await caller.wait_for(ErrorMessage)
        assert refused.message.code == "forbidden"
        for one in caller.received:
            shown = encode(one.message)
            assert '"q1"' not in shown or one is refused
            assert "euros" not in shown
            assert not (isinstance(one.message, OtherEvent) and "permission" in one.message.name)


@pytest.mark.parametrize("level", ["words", "events"])
async def test_a_caller_who_watches_sees_no_question_of_an_operator(level):
    """Over a real socket: neither question nor answer, nor what routes make of them, is told."""
    told = []

    async def alarmed(call):
        await payer(call)
        guard = call.bridge(name="guard", is_agent=False)
        guard.on([PermissionRequested, PermissionAnswered]).map(told.append)

    async def operator(call, question):
        return True

    rights = ["watch", "control"]
    token = sign_token(SECRET, "ada", lasts_s=60, rights=rights)
    with trio.fail_after(30):
        async with (
            open_server(
                App(alarmed, operator=operator),
                port=0,
                token_secret=SECRET,
                limits=Limits(watch=level),
            ) as server,
            open_caller(server.url, mode="text", token=token) as caller,
        ):
            caller.watch(True)
            caller.write("pay")
            await caller.wait_for(Spoken, lambda m: "allowed" in m.text)
            await caller.wait_for(Seen, lambda m: m.name == "call.answer_ended")
            assert [type(message.event) for message in told] == [
                PermissionRequested,
                PermissionAnswered,
            ]
            for one in caller.received:
                shown = encode(one.message)
                assert '"q1"' not in shown
                assert "permission_" not in shown
                assert "euros" not in shown


@pytest.mark.parametrize("moves", [False, True])
async def test_a_caller_is_told_nothing_of_a_tool_of_the_operators(serving, autojump_clock, moves):
    """Neither its call, progress and output nor its result, by no event and to no watcher."""
    told = []

    @tool(permission="operator")
    async def wire_money(iban: str, context: ToolContext) -> str:
        """Wire money."""
        context.progress("wiring secretly", fraction=0.5)
        context.output("stdout", "written secretly")
        for work in context.call.running_tools if moves else ():
            assert work.to_background()
        await trio.sleep(1)
        return "wired secretly"

    async def answer(call):
        model = ScriptedModel([calls("wire_money", iban="DE75")], "Done.", "Told.")
        call.router.observe(MONEY, lambda message: told.append(type(message.event)))
        call.converse(ChatNode(model, tools=[wire_money]))

    app = {"operator": lambda call, question: True}
    token = sign_token(SECRET, "ada", lasts_s=60, rights=["watch", "control"])
    options = {"token_secret": SECRET, "limits": Limits(watch="words"), "app": app}
    async with serving(answer, **options) as place, place.call(mode="text", token=token) as caller:
        caller.watch(True)
        caller.write("wire it")
        await caller.wait_for(Spoken, lambda m: "Done" in m.text)
        await trio.sleep(5)
        assert set(told) >= {ToolCall, ToolProgress, ToolOutput, ToolResult}
        assert (JobFinished in told) == moves
        assert any(isinstance(one.message, Seen) for one in caller.received)
        for one in caller.received:
            shown = encode(one.message)
            assert "DE75" not in shown
            assert "secretly" not in shown
            assert "wire_money" not in shown
            assert "tool" not in getattr(one.message, "name", "")


async def test_no_view_of_the_call_names_a_tool_of_the_operators(serving, autojump_clock):
    """Neither a snapshot, a receipt, a description, nor what such a tool asks the caller."""
    named = []

    @tool(permission="operator", policy=finish(3.0))
    async def wire_money(context: ToolContext) -> str:
        """Wire money."""
        await context.ask("To whom?")
        named.extend(one.name for one in context.call.snapshot().tools)
        await trio.sleep(2)
        return "wired"

    async def answer(call):
        wiring = ToolCallRequest(id="call_7", name="wire_money", arguments={}, raw="{}")
        model = ScriptedModel([wiring], "Done.", "Told.")
        call.converse(ChatNode(model, tools=[wire_money]))

    app = {"operator": lambda call, question: True}
    token = sign_token(SECRET, "ada", lasts_s=60, rights=["watch", "control"])
    options = {"token_secret": SECRET, "limits": Limits(watch="words"), "app": app}
    async with serving(answer, **options) as place, place.call(mode="text", token=token) as caller:
        caller.watch(True)
        caller.ask_snapshot(follow=True)
        caller.write("wire it")
        await caller.wait_for(Spoken, lambda m: "whom" in m.text)
        await trio.sleep(0.5)
        caller.write("to Ada")
        await trio.sleep(0.5)
        caller.ask_description("cancel")
        caller.control("cancel")
        receipt = await caller.wait_for(VerbReceipt)
        await caller.wait_for(VerbSettled)
        assert named == ["wire_money"], "the app sees it"
        assert receipt.message.accepted
        for one in caller.received:
            assert "wire_money" not in encode(one.message)


@pytest.mark.parametrize("allow", [True, False])
async def test_an_operator_answers_over_the_watch_socket(allow):
    """Who holds a token with that right sees the question, with whom it is about, and answers."""
    token = sign_token(SECRET, "boss", lasts_s=60, rights=["operator"])
    boss = {"Authorization": f"Bearer {token}"}
    ada = sign_token(SECRET, "ada", lasts_s=60)
    with trio.fail_after(30):
        async with (
            open_server(App(payer), port=0, token_secret=SECRET) as server,
            open_websocket(f"ws://127.0.0.1:{server.port}/watch", headers=boss) as watch,
            open_caller(server.url, mode="text", token=ada) as caller,
        ):
            caller.write("pay")
            asked = json.loads(await watch.receive())
            assert (asked["type"], asked["user"], asked["tool"]) == ("question", "ada", "pay")
            assert asked["arguments"] == {"euros": 7}
            async with open_websocket(f"ws://127.0.0.1:{server.port}/watch", headers=boss) as late:
                assert json.loads(await late.receive()) == asked
            await watch.send("nonsense")
            assert json.loads(await watch.receive())["type"] == "error"
            answer = {"type": "permission", "call": asked["call"], "id": "q1", "allow": allow}
            await watch.send(json.dumps(answer))
            closed = json.loads(await watch.receive())
            assert closed["verdict"] == ("allowed" if allow else "denied")
            await caller.wait_for(Spoken, lambda m: closed["verdict"] in m.text)
            await watch.send(json.dumps(answer))
            assert "no longer open" in json.loads(await watch.receive())["message"]


@pytest.mark.parametrize("rights", [["watch", "control"], []])
async def test_the_watch_socket_needs_the_right(serving, rights):
    """A token without the right gets 403, and none 401."""
    token = sign_token(SECRET, "ada", lasts_s=60, rights=rights)
    async with serving(payer, token_secret=SECRET) as place:
        ask = "GET /watch{} HTTP/1.1\nHost: localhost\n\n"
        assert " 403 " in await place.request(ask.format(f"?token={token}"))
        assert " 401 " in await place.request(ask.format(""))
        assert " 401 " in await place.request(ask.format("?resume=1"))
    async with serving(payer) as place:
        assert " 403 " in await place.request(ask.format(""))

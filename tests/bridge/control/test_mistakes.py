"""What is said when a verb is used wrongly, or too late."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import AsyncIterator, Callable
from typing import Any, get_args

import pytest
import trio
import trio.testing
from pydantic import BaseModel

from bargein import App, Call, Handle, ReasoningNode, open_agent
from bargein.client import NetworkCaller, open_caller
from bargein.control import VERBS
from bargein.events import AgentResponse, DTMFInput, UserStartedSpeaking
from bargein.protocol import ClientMessage, ProtocolViolationError, decode_client
from bargein.server import open_server


class Counter(ReasoningNode):
    """Says a word each second."""

    async def process_context(self, context: Any) -> AsyncIterator[Any]:
        for word in ("one ", "two ", "three "):
            yield AgentResponse(content=word)
            await trio.sleep(1)


@pytest.mark.parametrize("text", ["", "  ", "\n", "\u200b", " \ufeff\u2060 ", ".", "?!", "\u2026"])
async def test_empty_input_is_refused(autojump_clock, text: str):
    """Nothing was said: no turn begins, and nothing that waits is disturbed."""
    async with open_agent(Counter()) as handle:
        assert not handle.send_input(text)
        await trio.sleep(1)
        assert handle.snapshot().state == "idle"
        assert len(handle.call.history) == 0


def wrong(fn: Callable[..., Any], argument: str, value: Any, **others: Any) -> Any:
    """Make a row: a verb, which of its arguments is wrong, and a way to use it so."""
    return pytest.param(fn, argument, {**others, argument: value}, id=f"{fn.__name__}-{argument}")


HANDLE = [
    wrong(Handle.send_input, "text", 7),
    wrong(Handle.redirect, "text", None),
    wrong(Handle.redirect, "text", " "),
    wrong(Handle.redirect, "text", "\u200b"),
    wrong(Handle.resume, "note", 3),
    wrong(Handle.shutdown, "deadline_s", "soon"),
    wrong(Handle.shutdown, "deadline_s", -1),
    wrong(Handle.shutdown, "deadline_s", math.nan),
    wrong(Handle.shutdown, "deadline_s", True),
    wrong(Handle.describe, "verb", "cancle"),
    wrong(Handle.describe, "verb", []),
    wrong(Handle.respond, "permission", [], allow=True),
    wrong(Handle.respond, "allow", "no", permission="1"),
    wrong(Handle.respond, "remember", 1, permission="1", allow=True),
    wrong(Handle.publish, "event", None),
    wrong(Handle.publish, "event", AgentResponse),
    wrong(Handle.publish, "event", 1),
    wrong(Handle.answer, "question", 7, text="yes"),
    wrong(Handle.answer, "text", None, question="question_1"),
]
CALL = [
    wrong(Call.bridge, "name", 7),
    wrong(Call.bridge, "name", ""),
    wrong(Call.hand_over, "target", None),
    wrong(Call.hand_over, "reason", 7, target="counter"),
    wrong(Call.publish, "event", None),
    wrong(Call.publish, "event", AgentResponse),
    wrong(Call.publish, "event", {"type": "user.started_speaking"}),
    wrong(Call.publish, "source", 7, event=UserStartedSpeaking()),
    wrong(Call.screen, "screen", 7),
    wrong(Call.say, "text", None),
    wrong(Call.say, "interruptible", "no", text="Hello"),
    wrong(Call.say, "stop_on_key", "1", text="Hello"),
    wrong(Call.hold_speech, "reason", []),
    wrong(Call.release_speech, "reason", 7),
    wrong(Call.report_playback, "utterance", "x", played_ms=1, kind="done"),
    wrong(Call.report_playback, "played_ms", "far", utterance=1, kind="done"),
    wrong(Call.report_playback, "kind", "over", utterance=1, played_ms=1),
    wrong(Call.end, "reason", 7),
    wrong(Call.talk, "down", "yes"),
    wrong(Call.observe_changes, "fn", 7),
    wrong(Call.observe_errors, "fn", trio.sleep_forever),
    wrong(Call.forget_changes, "fn", print),
]
CALLER = [
    wrong(NetworkCaller.control, "verb", "cancle"),
    wrong(NetworkCaller.control, "text", 7, verb="resume"),
    wrong(NetworkCaller.respond, "permission", 7, allow=True),
    wrong(NetworkCaller.respond, "allow", None, permission="1"),
    wrong(NetworkCaller.respond, "remember", "no", permission="1", allow=True),
    wrong(NetworkCaller.answer, "question", None, text="yes"),
    wrong(NetworkCaller.answer, "text", 7, question="question_1"),
    wrong(NetworkCaller.ask_description, "verb", None),
    wrong(NetworkCaller.ask_snapshot, "follow", "no"),
    wrong(NetworkCaller.watch, "on", "no"),
    wrong(NetworkCaller.write, "text", 7),
    wrong(NetworkCaller.press, "button", "E"),
    wrong(NetworkCaller.mute, "on", "no"),
]
CHECKED_ELSEWHERE = {
    "bridge": {"node", "is_agent"},
    "converse": {"node", "name"},
    "join": {"node", "name"},
}
"""What a chain checks when it is built, or may be anything."""


@pytest.mark.parametrize(("owner", "rows"), [(Handle, HANDLE), (Call, CALL)])
def test_every_argument_has_a_row(owner: type, rows: list[Any]):
    """No verb of a call or of its handle takes an argument that is not tried below."""
    tried = {(row.values[0].__name__, row.values[1]) for row in rows}
    verbs = {n: f for n, f in inspect.getmembers(owner, inspect.isfunction) if n[0] != "_"}
    internal = {
        "why_not",
        "job_ended",
        "stop_everything",
        "is_agent",
        "has_floor",
        "is_audible",
        "answer_of",
    }
    for name, fn in verbs.items():
        arguments = set(inspect.signature(fn).parameters) - {"self"}
        missing = arguments - CHECKED_ELSEWHERE.get(name, set()) if name not in internal else set()
        assert {(name, argument) for argument in missing} <= tried


def _assert_sentence(caught: pytest.ExceptionInfo[Exception], verb: str, argument: str) -> None:
    said = str(caught.value)
    assert said.startswith(f"{verb}() {argument}= is ")
    assert "\n" not in said


@pytest.mark.parametrize(("verb", "argument", "given"), [*HANDLE, *CALL])
async def test_a_wrong_argument_is_a_sentence(
    autojump_clock, verb: Any, argument: str, given: dict[str, Any]
):
    """It names verb, argument and value, has changed nothing, and the agent works on."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        held = isinstance(inspect.getattr_static(Handle, verb.__name__, None), type(verb))
        with pytest.raises((ValueError, TypeError)) as caught:
            verb(handle if held else handle.call, **given)
        _assert_sentence(caught, verb.__name__, argument)
        await trio.sleep(5)
        assert "one two three" in str(handle.call.history.entries[-1])
        assert handle.call.current_state == "idle"


@pytest.mark.parametrize(("verb", "argument", "given"), CALLER)
async def test_a_client_says_it_before_it_sends(verb: Any, argument: str, given: dict[str, Any]):
    """The caller in Python is told in its own words, and nothing goes to the server."""
    told: list[object] = []

    async def answer(call: Call) -> None:
        call.router.add_sink(lambda message: told.append(message.event))

    async with (
        open_server(App(answer), port=0) as server,
        open_caller(server.url, mode="text") as caller,
    ):
        told.clear()
        with pytest.raises((ValueError, TypeError)) as caught:
            verb(caller, **given)
        _assert_sentence(caught, verb.__name__, argument)
        caller.press("1")  # what the server hears next
        with trio.fail_after(30):
            while not told:  # noqa: ASYNC110 - a server tells of no event
                await trio.sleep(0.001)
        assert told == [DTMFInput(button="1")]


FIELDS = [
    pytest.param(model, name, id=f"{model.__name__}-{name}")
    for model in get_args(ClientMessage)
    if isinstance(model, type) and issubclass(model, BaseModel)
    for name in model.model_fields
    if name != "type"
]


@pytest.mark.parametrize(("model", "name"), FIELDS)
def test_a_wrong_message_is_a_sentence(model: Any, name: str):
    """The server answers a field of a wrong kind by the name of message and field, in a line."""
    tag = get_args(model.model_fields["type"].annotation)[0]
    with pytest.raises(ProtocolViolationError) as caught:
        decode_client(json.dumps({"type": tag, name: [[]]}))
    assert caught.value.code == "bad_message"
    assert caught.value.message.startswith(f"{tag}: ")
    assert "\n" not in caught.value.message


OTHERS = [
    (lambda call: call.control.use("cancle"), "use() verb= is one of resume, barge_in, "),
    (lambda call: call.control.use("resume", 7), "resume() text= is a string, not 7"),
    (lambda call: call.permissions.respond("1", "no"), "respond() allow= is True or False"),
    (
        lambda call: setattr(call.control, "pause_tools", "detatch"),
        "pause_tools is one of finish, cancel, detach, not 'detatch'",
    ),
]


@pytest.mark.parametrize(("use", "message"), OTHERS)
async def test_a_mistake_inside_a_call_is_a_sentence(autojump_clock, use: Any, message: str):
    """What a node uses besides says it in the same way."""
    async with open_agent(Counter()) as handle:
        with pytest.raises((ValueError, TypeError)) as caught:
            use(handle.call)
        assert str(caught.value).startswith(message)


LINE = [
    (lambda call: call.actions.transfer(7), "transfer() target_phone_number= is a string, not 7"),
    (lambda call: call.actions.send_dtmf("E"), "send_dtmf() button= is one of 0, 1, "),
]


@pytest.mark.parametrize(("use", "message"), LINE)
async def test_a_mistake_about_the_line_is_a_sentence(autojump_clock, use: Any, message: str):
    """Nothing is asked of the caller's line, and no request is told of."""
    async with open_agent(Counter()) as handle:
        with pytest.raises((ValueError, TypeError)) as caught:
            await use(handle.call)
        assert str(caught.value).startswith(message)


async def test_a_note_of_two_lines_is_one_line_of_the_record(autojump_clock):
    """What resume() is given cannot make lines of its own in the note to the model."""
    async with open_agent(Counter()) as handle:
        handle.send_input("count")
        await trio.sleep(0.5)
        handle.pause()
        handle.resume("two\nlines\r\n\n of it")
        [note] = [e for e in handle.call.history.entries if e.role == "note"]
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

    def use() -> None:
        for verb in VERBS:
            receipt = handle.redirect("x") if verb == "redirect" else getattr(handle, verb)()
            assert (receipt.accepted, receipt.reason) == (False, "the call is over")
        assert not handle.send_input("hello")
        assert not handle.respond("1", allow=True)
        assert handle.describe("cancel") == "Cancel: nothing would happen; the call is over."
        assert handle.snapshot().state == "closed"

    async def use_in_another_loop() -> None:
        use()

    use()
    trio.run(use_in_another_loop)


async def test_another_event_loop_is_told_to_use_a_thread(autojump_clock):
    """The verbs of a call that goes on in another loop would block this one."""
    async with open_agent(Counter()) as handle:

        async def main() -> None:
            with pytest.raises(RuntimeError, match="another event loop"):
                handle.cancel()
            assert await trio.to_thread.run_sync(handle.send_input, "count")

        await trio.to_thread.run_sync(trio.run, main)
        await trio.testing.wait_all_tasks_blocked()
        # Virtual time goes on while a thread works: the answer may be over by now.
        assert [entry.role for entry in handle.history.entries] == ["user", "agent"]

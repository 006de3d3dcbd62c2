"""The model that says what a test wants, and takes only what true ones take."""

import json

import pytest
import trio

from bargein import ChatNode, open_agent
from bargein.events import UserStartedSpeaking
from bargein.llm import (
    AnswerProgress,
    ChatModel,
    ChatModelError,
    TextDelta,
    ToolCallRequest,
    Usage,
)
from bargein.testing import (
    CalledTool,
    ScriptedModel,
    ScriptError,
    calls,
    open_call,
    request_problems,
    words,
)
from bargein.tools import tool

HELLO = [{"role": "user", "content": "hello"}]


@tool(read_only=True)
async def find_table(day: str) -> str:
    """Find a table."""
    await trio.sleep(1)
    return f"table 7 is free on {day}"


SCHEMA = find_table.as_function()


def answered_by(model, *tools):
    async def answer(call):
        call.converse(ChatNode(model, tools=tools))

    return answer


async def ask(model, messages=HELLO, tools=()):
    return [piece async for piece in model.stream(messages, tools=tools)]


def call(id, name="find_table", arguments="{}"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def called(*given):
    return {"role": "assistant", "content": None, "tool_calls": list(given)}


def result(id):
    return {"role": "tool", "tool_call_id": id, "content": "done"}


# --- replies


async def test_it_plays_its_replies_in_order(autojump_clock):
    """A text is an answer; a list is one in pieces; each ends with one Usage."""
    model = ScriptedModel("One.", ["Two", " and", " three."], [])
    assert isinstance(model, ChatModel)
    assert await ask(model) == [TextDelta("One."), Usage()]
    assert await ask(model) == [TextDelta("Two"), TextDelta(" and"), TextDelta(" three."), Usage()]
    assert await ask(model) == [Usage()]


async def test_numbers_are_seconds(autojump_clock):
    """A pause takes exactly its time, and words come one by one."""
    model = ScriptedModel([0.5, "One ", 2, "two."], words("We are open.", 0.25))
    await ask(model)
    assert trio.current_time() == 2.5
    assert await ask(model) == [*map(TextDelta, ["We ", "are ", "open."]), Usage()]
    assert trio.current_time() == 3.25
    with pytest.raises(TypeError, match=r"words\(text=\) is a string, not \['We'\]"):
        words(["We"], 0.25)


async def test_pieces_of_the_protocol_pass_as_they_are(autojump_clock):
    """Progress, a usage of the script's own, and a call that no script would allow."""
    pieces = [
        AnswerProgress("thinking"),
        ToolCallRequest("x", "made_up", None, "{"),
        Usage(output_tokens=7),
    ]
    assert await ask(ScriptedModel(pieces)) == pieces


async def test_an_exception_fails_the_answer_there(autojump_clock):
    """What was yielded before it stays good."""
    model = ScriptedModel(["Let me ", ChatModelError("overloaded", retryable=True)])
    answer = model.stream(HELLO)
    assert await anext(answer) == TextDelta("Let me ")
    with pytest.raises(ChatModelError, match="overloaded"):
        await anext(answer)
    assert model.requests[0].outcome == "failed"


async def test_a_function_answers_the_request(autojump_clock):
    """A function in the script sees the request; then= answers all requests after the script."""
    model = ScriptedModel("Hello.", then=lambda request: [0.5, f"You said {request.last_text}."])
    await ask(model)
    for _ in range(2):
        assert (await ask(model))[0] == TextDelta("You said hello.")


async def test_calls_get_ids_of_their_own(autojump_clock):
    """The first call of a tool has its name as id; later ones have a number appended."""
    model = ScriptedModel([calls("find_table", day="Friday")] * 2)
    given = await ask(model, tools=[SCHEMA])
    assert [(one.id, one.arguments, one.raw) for one in given[:-1]] == [
        ("call_find_table", {"day": "Friday"}, '{"day": "Friday"}'),
        ("call_find_table_2", {"day": "Friday"}, '{"day": "Friday"}'),
    ]


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        ("", ValueError, "empty text"),
        (["a", ""], ValueError, "empty text"),
        ([-1], ValueError, "seconds from 0, not -1"),
        ([float("nan")], ValueError, "not nan"),
        ([calls("x"), "text"], ValueError, "before its calls"),
        ([Usage(), "text"], ValueError, "ends a reply, and 1 pieces follow"),
        ([ChatModelError("no"), 1.0], ValueError, "ends a reply"),
        (None, TypeError, "not None"),
        ([True], TypeError, "not True"),
        ([["a"]], TypeError, r"not \['a'\]"),
        ({"a": 1}, TypeError, "made of texts"),
    ],
)
async def test_a_reply_that_no_model_gives_is_an_error_where_it_is_written(reply, error, words):
    """Mistakes of a script show when it is made; those of its functions when they are asked."""
    with pytest.raises(error, match=words):
        ScriptedModel("fine", reply)
    with pytest.raises(error, match=words):
        await ask(ScriptedModel(lambda request: reply))


def test_arguments_are_json():
    """A call that cannot be written as JSON is an error at once."""
    with pytest.raises(TypeError):
        calls("book", when=object())


# --- what was asked


async def test_it_says_what_it_was_asked(autojump_clock):
    """Each request has its messages, its tools, its time, and each call with its result."""
    model = ScriptedModel([0.5, calls("find_table", day="Friday")], "Table 7 is yours.")
    async with open_call(answered_by(model, find_table)) as caller:
        await caller.says("a table on Friday", takes_s=1.0)
        await caller.quiet()
    first, second = model.requests
    assert first.messages == [{"role": "user", "content": "a table on Friday"}]
    assert (first.at_s, first.ended_at_s, first.outcome) == (1.0, 1.5, "done")
    assert first.tool_names == ["find_table"]
    assert second.called == [
        CalledTool("call_find_table", "find_table", {"day": "Friday"}, "table 7 is free on Friday")
    ]
    assert second.texts("user") == ["a table on Friday"]
    assert second.last_text == "table 7 is free on Friday"
    assert caller.heard == "Table 7 is yours."


async def test_a_cut_closes_the_answer(autojump_clock):
    """An answer that nobody takes any more is closed in the step in which it is cut."""
    model = ScriptedModel(words("One two three four five six seven.", 0.5))
    async with open_call(answered_by(model)) as caller:
        await caller.says("count", takes_s=1.0)
        await caller.at(2.2)
        assert model.open_streams == 1
        caller.publish(UserStartedSpeaking())
        await trio.testing.wait_all_tasks_blocked()
        assert model.open_streams == 0
    [request] = model.requests
    assert (request.outcome, round(request.ended_at_s, 6)) == ("cut", 2.2)


async def test_what_was_asked_does_not_change(autojump_clock):
    """A recorded request is a copy, so later changes to the messages do not affect it."""
    messages = [{"role": "user", "content": "hello"}]
    model = ScriptedModel("Hi.")
    await ask(model, messages)
    messages[0]["content"] = "changed"
    assert model.requests[0].messages == HELLO


# --- the end of the script


async def test_being_asked_too_often_is_an_error(autojump_clock):
    """The sentence says how often, how long the script is, what was asked, and what to do."""
    model = ScriptedModel("One.")
    async with open_call(answered_by(model), expect_errors=ScriptError) as caller:
        for text in ("first", "second"):
            await caller.says(text)
            await caller.quiet()
    [error] = map(str, caller.errors)
    assert "asked 2 times, and its script has 1 reply; add one, or answer all" in error
    assert '"content": "second"' in error
    assert [request.outcome for request in model.requests] == ["done", "failed"]


async def use(model, times):
    with model:
        for _ in range(times):
            await ask(model)


async def test_a_script_that_is_not_used_up_fails_its_block(autojump_clock):
    """The block of the model fails at its end, and not if the test has failed anyhow."""
    with pytest.raises(ScriptError, match=r"1 of 2 replies.*asked 1 times.*next one is 'Two\.'"):
        await use(ScriptedModel("One.", "Two."), 1)
    with pytest.raises(ZeroDivisionError):
        await use(ScriptedModel(ZeroDivisionError("the test"), "Two."), 1)
    await use(ScriptedModel("One.", then="Two."), 1)
    await use(ScriptedModel("One.", then="Two."), 3)


async def test_a_refusal_that_was_swallowed_fails_the_block(autojump_clock):
    """If an agent swallows the error, the model raises it at the end."""
    model = ScriptedModel()
    async with open_agent(ChatNode(model)) as handle:
        handle.send_input("hello")
        await trio.sleep(1)
        assert handle.snapshot().state == "idle"
    with pytest.raises(ScriptError, match="asked 1 times, and its script has 0 replies"):
        model.check()


async def test_a_tool_that_is_not_offered_is_an_error_of_the_script(autojump_clock):
    """The error for a misspelt name lists the known names."""
    with pytest.raises(ScriptError, match=r"calls 'find_tabel', .*offered \['find_table'\]"):
        await ask(ScriptedModel(calls("find_tabel")), tools=[SCHEMA])


# --- what providers refuse


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "nothing to answer"),
        ([{"role": "system", "content": "p"}], "nothing to answer"),
        ([*HELLO, called(call("a"))], "'a' has no result"),
        ([*HELLO, called(call("a")), *HELLO], r"\['a'\] have no result"),
        ([*HELLO, called(call("a"), call("b")), result("a")], "'b' has no result"),
        ([*HELLO, result("a")], "a result without its call"),
        ([*HELLO, called(call("a")), result("a"), result("a")], "a result without its call"),
        ([*HELLO, called(call("a")), *HELLO, result("a")], "a result without its call"),
        ([*HELLO, called(call("a"), call("a")), result("a"), result("a")], "the id 'a' is used"),
        ([*HELLO, called(call("a" * 41)), result("a" * 41)], "too long"),
        ([*HELLO, called(call("a", "no such")), result("a")], "the name 'no such'"),
        ([*HELLO, called(call("a", arguments="[1]")), result("a")], r"the arguments '\[1\]'"),
        ([*HELLO, called(call("a", arguments="{")), result("a")], "the arguments '{'"),
        ([*HELLO, called(call("a", arguments={})), result("a")], "the arguments {}"),
        ([*HELLO, called(call("a", arguments=None)), result("a")], "the arguments None"),
        ([*HELLO, called(call("a", None)), result("a")], "the name None"),
        ([*HELLO, called(call(None)), result("a")], "the id None"),
        ([*HELLO, called({"id": "a"}), result("a")], "the name None; 1: the arguments None"),
        ([{"role": "user", "content": " "}], "user without content"),
        ([{"role": "user"}], "user without content"),
        ([*HELLO, {"role": "assistant", "content": None}, *HELLO], "assistant without content"),
        ([{"role": "user", "content": "\ud800"}], "user without content"),
        ([{"role": "caller", "content": "hello"}], "the role 'caller'"),
        ([{"content": "hello"}], "the role None"),
        ([{**called(call("a")), "role": "user"}, result("a")], "user with calls of tools"),
        ([*HELLO, {"role": "assistant", "content": "Hi."}], "1: the last message is the assis"),
        ([*HELLO, {"role": "system", "content": "p"}], "1: a system message behind others"),
        ([{"role": "system", "content": "p"}] * 2 + HELLO, "1: a system message behind others"),
    ],
)
async def test_it_refuses_what_a_provider_refuses(autojump_clock, messages, problem):
    """Each rule has a request that breaks it, and the error says at which message."""
    model = ScriptedModel("Hi.")
    with pytest.raises(ScriptError, match=f"a provider would refuse request 1: .*{problem}"):
        await ask(model, messages)


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ([SCHEMA] * 2, "two tools are called 'find_table'"),
        ([{"type": "function", "function": {"name": "find table"}}], "the tool 'find table'"),
        ([{"function": {"name": "find"}}], "the tool 'find' of type None"),
        (
            [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}],
            "the parameters of the tool 'f' are no object",
        ),
    ],
)
async def test_it_refuses_tools_that_a_provider_refuses(autojump_clock, tools, problem):
    """Names are of certain characters and used once, and parameters are an object."""
    with pytest.raises(ScriptError, match=problem):
        await ask(ScriptedModel("Hi."), tools=tools)


def test_what_providers_take_is_no_problem():
    """Calls side by side with results in any order, two of one side in a row, a greeting first."""
    greeting = {"role": "assistant", "content": "Good evening."}
    asked = called(call("a"), call("b", arguments=json.dumps({"day": "Friday"})))
    chat = [{"role": "system", "content": "p"}, greeting, *HELLO, *HELLO, asked]
    assert request_problems([*chat, result("b"), result("a")], [SCHEMA]) == []


@pytest.mark.parametrize("reply", [5, 0.5, b"x", bytearray(b"x")])
def test_a_pause_alone_and_bytes_are_no_replies(reply):
    """They are refused where the script is written, and the error says what to write."""
    with pytest.raises(TypeError, match=r"write \[|decode"):
        ScriptedModel(reply)
    with pytest.raises(TypeError):
        ScriptedModel("Hello.", then=reply)


async def test_content_in_parts_is_read():
    """A message may be a list of parts, as texts with images are; a reply may hold pieces."""
    model = ScriptedModel([TextDelta("A "), "cat."])
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}},
    ]
    said = [
        p.text
        async for p in model.stream([{"role": "user", "content": parts}])
        if isinstance(p, TextDelta)
    ]
    assert said == ["A ", "cat."]
    assert model.requests[0].last_text == "What is this?"
    assert model.requests[0].texts("user") == ["What is this?"]


async def test_empty_parts_are_no_content():
    """A message without a part, or with an empty text, is refused as before."""
    for parts in ([], [{"type": "text", "text": " "}]):
        with pytest.raises(ScriptError):
            await anext(ScriptedModel("x").stream([{"role": "user", "content": parts}]))

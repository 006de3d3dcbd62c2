"""Conversations that a client names: who may, what it is told, and what is refused."""

import pytest

from bargein import App, Call, CallRequest
from bargein.client import CallRefusedError, Resumed, Spoken, open_caller
from bargein.conversations import SqliteConversations
from bargein.events import AgentResponse, UserTranscriptionReceived
from bargein.server import open_server


async def echo(call: Call) -> None:
    """Answers each line with itself."""
    agent = call.bridge(name="echo")
    agent.on(UserTranscriptionReceived).map(
        lambda m: AgentResponse(content=f"you said {m.event.content}")
    ).broadcast()


def app(tmp_path, who=True) -> App:
    return App(
        echo,
        conversations=SqliteConversations(tmp_path / "calls.db"),
        callers_name_conversations=who,
    )


async def say(caller, text):
    caller.write(text)
    await caller.wait_for(Spoken, lambda m: m.text == f"you said {text}")


async def test_a_named_conversation_goes_on_in_the_next_call(tmp_path):
    """The second call begins with what was said in the first, and says so in its hello."""
    async with open_server(app(tmp_path), port=0) as server:
        async with open_caller(server.url, mode="text", conversation="ada") as caller:
            assert (caller.hello.conversation, caller.hello.transcript) == ("ada", ())
            await say(caller, "I am Ada")
        async with open_caller(server.url, mode="text", conversation="ada") as caller:
            said = [(one.role, one.text, one.heard) for one in caller.hello.transcript]
            assert said == [
                ("user", "I am Ada", None),
                ("agent", "you said I am Ada", "you said I am Ada"),
            ]
            await say(caller, "again")
        async with open_caller(server.url, mode="text", conversation="bob") as caller:
            assert caller.hello.transcript == ()


async def test_two_calls_cannot_have_one_conversation(tmp_path):
    """The second gets a typed refusal before any hello; the first is not disturbed."""
    async with (
        open_server(app(tmp_path), port=0) as server,
        open_caller(server.url, mode="text", conversation="ada") as caller,
    ):
        with pytest.raises(CallRefusedError, match="open in another call") as refused:
            async with open_caller(server.url, mode="text", conversation="ada"):
                pass
        assert refused.value.code == "conversation_in_use"
        await say(caller, "still me")
        assert server.metrics.rejected["conversation_in_use"] == 1
        assert server.calls == 1
    assert server.metrics.calls.total() == 1  # a call that was refused was none


async def test_without_the_app_s_word_nobody_names_a_conversation(tmp_path):
    """Names are no secret, so an app says that callers may name them, or they may not."""
    async with open_server(app(tmp_path, False), port=0) as server:
        with pytest.raises(CallRefusedError, match="may not name a conversation") as refused:
            async with open_caller(server.url, mode="text", conversation="ada"):
                pass
        assert refused.value.code == "conversation_refused"
        async with open_caller(server.url, mode="text") as caller:
            assert caller.hello.conversation is None
            await say(caller, "hello")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_says_who_may(tmp_path, is_async):
    """It sees the conversation and how the client asked, and only True lets the client in."""
    asked: list[CallRequest] = []

    def owns(request: CallRequest) -> bool:
        asked.append(request)
        return request.conversation == f"of-{request.query.get('user')}"

    async def looks_up(request: CallRequest) -> bool:
        return owns(request)

    async with open_server(app(tmp_path, looks_up if is_async else owns), port=0) as server:
        url = f"ws://127.0.0.1:{server.port}/ws?user=ada"
        async with open_caller(url, mode="text", conversation="of-ada") as caller:
            await say(caller, "mine")
        with pytest.raises(CallRefusedError, match="not open to you") as refused:
            async with open_caller(url, mode="text", conversation="of-bob"):
                pass
        assert refused.value.code == "conversation_refused"
        assert (asked[0].mode, asked[0].peer) == ("text", "127.0.0.1")
        assert asked[0].headers["host"] == f"127.0.0.1:{server.port}"
        async with open_caller(url, mode="text"):
            assert len(asked) == 2  # who names none is not asked about


async def test_a_function_that_fails_lets_nobody_in(tmp_path):
    """The call fails alone, and the client is told no more than that."""

    def fails(request: CallRequest) -> bool:
        raise KeyError("my secret")

    async with open_server(app(tmp_path, fails), port=0) as server:
        with pytest.raises(CallRefusedError) as refused:
            async with open_caller(server.url, mode="text", conversation="ada"):
                pass
        assert refused.value.code == "agent_error"
        assert "secret" not in str(refused.value)


async def test_a_truthy_answer_is_not_yes(tmp_path):
    """A function that forgets to compare opens nothing."""
    async with open_server(app(tmp_path, lambda request: request.headers), port=0) as server:
        with pytest.raises(CallRefusedError):
            async with open_caller(server.url, mode="text", conversation="ada"):
                pass


async def test_a_name_that_is_none_is_refused_before_the_call(tmp_path):
    """The handshake is answered with 400 and the same code."""
    async with open_server(app(tmp_path), port=0) as server:
        with pytest.raises(CallRefusedError, match="400") as refused:
            async with open_caller(server.url, mode="text", conversation="../etc"):
                pass
        assert refused.value.code == "conversation_refused"


async def test_a_line_that_drops_keeps_its_conversation(tmp_path):
    """The call that goes on is in the same conversation, which nobody else got meanwhile."""
    async with (
        open_server(app(tmp_path), port=0) as server,
        open_caller(server.url, mode="text", conversation="ada") as caller,
    ):
        await say(caller, "one")
        caller.drop_line()
        resumed = await caller.wait_for(Resumed)
        assert resumed.message.conversation == "ada"
        await say(caller, "two")
        assert server.calls == 1


def test_naming_needs_a_store():
    """An app without conversations cannot let callers name them."""
    with pytest.raises(ValueError, match="conversations="):
        App(echo, callers_name_conversations=True)

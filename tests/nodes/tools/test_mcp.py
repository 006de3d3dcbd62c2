"""Tools of MCP servers, which are real processes here, and real time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from bargein import Call, Message
from bargein.events import ToolCall, ToolOutput, ToolProgress
from bargein.routes import CodeExitError
from bargein.testing import open_call
from bargein.tools import (
    BadArgumentsError,
    McpExtraError,
    McpServer,
    McpServerError,
    McpToolError,
    Tool,
    ToolDefinitionError,
    ToolRunner,
    finish,
    shield,
)

pytestmark = pytest.mark.proof

HERE = Path(__file__).parent
SDK_SERVER = [sys.executable, str(HERE / "mcp_server.py")]
MINI_SERVER = [sys.executable, str(HERE / "mini_mcp_server.py")]
LIMIT_S = 60.0
"""Generous: what is to take a second is asserted where it is measured."""


class Notes:
    """Replaces the context of a tool, and records what it gets."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float | None]] = []
        self.written: list[str] = []
        self.concluded: tuple[str, str | None, bool] | None = None

    def progress(self, text: str = "", fraction: float | None = None) -> None:
        self.told.append((text, fraction))

    def output(self, stream: str, text: str) -> None:
        self.written.append(f"{stream}: {text}")

    def conclude(self, content: str, outcome: str | None = None, *, error: bool = False) -> None:
        self.concluded = (content, outcome, error)


@pytest.fixture(scope="module", autouse=True)
def http_server() -> Iterator[subprocess.Popen[str]]:
    """Begin early, as it takes two seconds to be there."""
    command = [*SDK_SERVER, "--http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def named(tools: list[Tool]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}


async def call(tool: Tool, notes: Notes | None = None, **arguments: Any) -> str:
    """Call a tool as the runner does."""
    with trio.fail_after(LIMIT_S):
        return await tool.run(notes or Notes(), tool.parse(arguments))


async def until_written(path: Path, text: str) -> None:
    """Wait until another process has written a text to a file."""
    with trio.fail_after(LIMIT_S):
        while read(path) != text:  # noqa: ASYNC110 - another process sets no event
            await trio.sleep(0.01)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for its parent to ask does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


# --- servers on the SDK's own server side -------------------------------------------------------


async def test_tools_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools of a server take what it says, and give back what it gives, as text."""
    monkeypatch.setenv("MCP_TEST_SECRET", "ours")
    server = McpServer(
        SDK_SERVER,
        env={"MCP_TEST": "given"},
        cwd=tmp_path,
        prefix="t_",
        policy=finish(2.0),
        policies={"wait": "detach"},
        timeout_s=5.0,
        timeouts_s={"wait": None},
        permissions={"fail": "ask"},
    )
    with trio.fail_after(LIMIT_S):
        async with server.open() as opened:
            tools = named(opened)
            add, wait, fail = tools["t_add"], tools["t_wait"], tools["t_fail"]
            assert (add.description, add.read_only) == ("Add two numbers.", True)
            assert add.parameters["required"] == ["a", "b"]
            assert (add.policy, add.timeout_s, add.permission) == (finish(2.0), 5.0, "auto")
            assert (wait.policy.kind, wait.timeout_s, wait.read_only) == ("detach", None, False)
            assert fail.permission == "ask"

            assert await call(add, a=1, b=2) == "3"
            assert await call(tools["t_say_hello_v1"]) == "hello you"
            assert await call(tools["t_picture"]) == "[image image/png, 5 bytes]"
            assert await call(tools["t_where"]) == f"{tmp_path} given nothing"
            notes = Notes()
            assert await call(fail, notes) == "Error executing tool fail"
            assert notes.concluded == ("Error executing tool fail", None, True)
            with pytest.raises(BadArgumentsError, match=r"'t_add': .*'b' is a required property"):
                add.parse({"a": 1})
            with pytest.raises(BadArgumentsError, match="a: 'one' is not of type 'integer'"):
                add.parse({"a": "one", "b": 2})
            with pytest.raises(BadArgumentsError, match="one JSON object"):
                add.parse(None, "{a")

            notes = Notes()
            assert await call(tools["t_count"], notes, steps=2) == "counted"
            assert notes.told == [("step 1", 0.5), ("step 2", 1.0)]
            assert notes.written == ["stderr: info: counted 1\n", "stderr: info: counted 2\n"]


async def test_a_deaf_server(tmp_path: Path) -> None:
    """A cut call is cancelled at the server; one that is deaf to SIGTERM is gone all the same."""
    pids, state = tmp_path / "pids", tmp_path / "state"
    server = McpServer([*SDK_SERVER, "--deaf", str(pids)])
    with trio.fail_after(LIMIT_S):
        async with server.open() as opened:
            wait = named(opened)["wait"]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: call(wait, path=str(state)))
                await until_written(state, "began")
                began_s = trio.current_time()
                nursery.cancel_scope.cancel()
            assert trio.current_time() - began_s < 1.5
            await until_written(state, "cancelled")
            began_s = trio.current_time()
        assert trio.current_time() - began_s < 5.0
    leader, child = map(int, pids.read_text().split())
    assert not is_alive(leader)
    assert not is_alive(child)


async def test_tools_at_a_url(http_server: subprocess.Popen[str], tmp_path: Path) -> None:
    """A server at a URL works, learns of a cancelled call, and its loss does not end the block."""
    assert http_server.stdout is not None
    port = int(await trio.to_thread.run_sync(http_server.stdout.readline))
    state = tmp_path / "state"
    server = McpServer(url=f"http://127.0.0.1:{port}/mcp", headers={"X-Test": "1"})
    assert server.name == f"127.0.0.1:{port}"
    with trio.fail_after(LIMIT_S):
        async with server.open() as opened:
            tools = named(opened)
            assert await call(tools["add"], a=20, b=3) == "23"
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: call(tools["wait"], path=str(state)))
                await until_written(state, "began")
                nursery.cancel_scope.cancel()
            await until_written(state, "cancelled")

            http_server.kill()
            await trio.to_thread.run_sync(http_server.wait)
            for _ in range(2):
                with pytest.raises(McpToolError, match=r"call of 'add' failed|cannot be used"):
                    await call(tools["add"], a=1, b=1)


# --- a server that goes away, or misbehaves -----------------------------------------------------


async def test_a_server_that_dies() -> None:
    """When a server dies, the current call fails, and the next one starts it again."""
    async with McpServer(MINI_SERVER).open() as opened:
        tools = named(opened)
        assert await call(tools["echo"], text="one") == "echo: one"
        with pytest.raises(McpToolError) as caught:
            await call(tools["die"], text="")
        told = "the server was lost while it worked (exited with code 3)"
        assert str(caught.value) == f"The call of 'die' failed: {told}."
        assert await call(tools["echo"], text="two") == "echo: two"


async def test_a_server_whose_child_holds_its_output() -> None:
    """The death of a server is noticed while a child of its own holds its output open."""
    async with McpServer(MINI_SERVER).open() as opened:
        began_s = trio.current_time()
        with pytest.raises(McpToolError, match="exited with code 4"):
            await call(named(opened)["orphan"], text="")
        assert trio.current_time() - began_s < 5.0


async def test_a_server_that_reads_no_more() -> None:
    """A server that reads no more delays neither the cut of a call, nor the end for long."""
    async with McpServer(MINI_SERVER).open() as opened:
        stuck = named(opened)["stuck"]
        with trio.move_on_after(0.2):
            await call(stuck, text="")
        with trio.move_on_after(1.0) as cut:  # it is being sent by then
            await call(stuck, text="x" * 2_000_000)  # more than a pipe takes
        assert cut.cancelled_caught
        assert 0.5 < trio.current_time() - cut.deadline < 3.0
        began_s = trio.current_time()
    assert trio.current_time() - began_s < 5.0


@pytest.mark.parametrize("how", ["stop", "garbage"])
async def test_a_server_that_hangs_is_replaced(how: str) -> None:
    """After a cancel, waiting calls fail within 7 s, and the next one is served by another process.

    Until the cut nobody can tell it from one that works for long.
    """
    async with McpServer(MINI_SERVER).open() as opened, trio.open_nursery() as nursery:
        tools = named(opened)
        first = await call(tools["pid"], text="")
        cut = trio.CancelScope()

        async def get_stuck() -> None:
            with cut, suppress(McpToolError):  # of one that dies
                await call(tools[how], text="")

        nursery.start_soon(get_stuck)
        await trio.sleep(0.3)
        cut.cancel()
        began_s = trio.current_time()
        with suppress(McpToolError):  # of one that is lost meanwhile
            await call(tools["echo"], text="second")
        assert trio.current_time() - began_s < 7
        assert await call(tools["pid"], text="") != first
    assert not is_alive(int(first))


async def test_a_server_that_obeys_late_is_kept() -> None:
    """A server that works on one thread may answer when the call that was cut is over."""
    async with McpServer(MINI_SERVER).open() as opened:
        tools = named(opened)
        first = await call(tools["pid"], text="")
        with trio.move_on_after(0.1):
            await call(tools["nap"], text="")
        assert await call(tools["pid"], text="") == first


async def test_who_hears_of_a_tool_and_exits() -> None:
    """A function that takes what a server tells while it works exits; the tool goes on."""

    def exits(message: Message) -> None:
        heard.append(type(message.event))
        raise SystemExit(2)

    heard: list[type[object]] = []
    async with (
        McpServer(SDK_SERVER).open() as opened,
        open_call(nothing, expect_errors=True) as caller,
    ):
        for kind in (ToolProgress, ToolOutput):
            caller.call.router.add_sink(exits, kind)
        runner = ToolRunner(caller.call, opened, source="agent")
        for number in ("1", "2"):
            running = runner.start(
                ToolCall(id=number, name="count", arguments={"steps": 1}), run=None
            )
            with trio.fail_after(LIMIT_S):
                await running.done.wait()
            assert running.final is not None
            assert (running.final.content, running.final.error) == ("counted", False)
        assert not caller.call.ended.is_set()
    assert {ToolProgress, ToolOutput} <= set(heard)
    assert {type(error) for error in caller.errors} == {CodeExitError}


async def test_an_endless_message() -> None:
    """A server whose message does not end is lost, before it fills the memory."""
    async with McpServer(MINI_SERVER).open() as opened:
        tools = named(opened)
        with pytest.raises(McpToolError, match="sent a message of more than"):
            await call(tools["flood"], text="")
        assert await call(tools["echo"], text="again") == "echo: again"


async def test_progress_without_a_total() -> None:
    """Rising progress is published; reports out of order are dropped."""
    notes = Notes()
    async with McpServer(MINI_SERVER).open() as opened:
        await call(named(opened)["count"], notes, text="")
    assert notes.told == [("1", None), ("3", None)]


async def test_a_refused_call() -> None:
    """An error of the protocol reaches the model as an error."""
    async with McpServer(MINI_SERVER).open() as opened:
        with pytest.raises(McpToolError, match="The call of 'refuse' failed: unknown: tools/call"):
            await call(named(opened)["refuse"], text="")


async def test_tools_after_the_end() -> None:
    """A tool whose server was closed says so; a call under way ends with the server."""
    async with trio.open_nursery() as nursery:
        ended = trio.Event()

        async def long() -> None:
            with pytest.raises(McpToolError, match="was closed"):
                await call(stuck, text="")
            ended.set()

        async with McpServer(MINI_SERVER).open() as opened:
            stuck = named(opened)["stuck"]
            nursery.start_soon(long)
            await trio.sleep(0.1)
        with trio.fail_after(LIMIT_S):
            await ended.wait()
    with pytest.raises(McpToolError, match="is closed; do not call it again"):
        await call(stuck, text="")


async def test_an_error_in_the_block() -> None:
    """An error of the block comes out as it is, and no process is left."""
    with pytest.raises(KeyError, match="mine"):
        async with McpServer(MINI_SERVER).open():
            raise KeyError("mine")


async def test_names_that_models_take() -> None:
    """Names are made such as models take, and are unique."""
    async with McpServer(MINI_SERVER).open() as opened:
        assert [tool.name for tool in opened][1:4] == ["a_b", "a_b_2", "x" * 64]
        assert await call(opened[2], text="here") == "a/b: here"


async def test_a_schema_that_is_none() -> None:
    """A broken schema, or one that refers elsewhere, checks nothing: the server checks itself."""
    async with McpServer(MINI_SERVER, name="mini").open() as opened:
        assert await call(named(opened)["odd"], text=1) == "odd: 1"
        assert await call(named(opened)["refers"], a=1) == "refers: None"


async def test_bad_arguments_are_named_with_their_place() -> None:
    """What does not fit is said with its place, in at most 200 characters."""
    async with McpServer(MINI_SERVER).open() as opened:
        people = named(opened)["people"]
        assert people.parse({"people": [{"age": 3}]})
        with pytest.raises(BadArgumentsError) as caught:
            people.parse({"people": [{"age": -1}, {"age": "x"}]})
        assert str(caught.value).endswith(
            ": people[0].age: -1 is less than the minimum of 0; "
            "people[1].age: 'x' is not of type 'integer'"
        )
        with pytest.raises(BadArgumentsError) as caught:
            people.parse({"people": [{"age": -1}] * 9})
        assert str(caught.value).count("minimum") == 3
        assert str(caught.value).endswith("; and more")
        assert len(str(caught.value)) <= 200


# --- what the model reads of a result -----------------------------------------------------------

BLOCKS = [
    ({"type": "text", "text": "plain"}, "plain"),
    ({"type": "audio", "data": "MTIzNA==", "mimeType": "audio/wav"}, "[audio audio/wav, 4 bytes]"),
    (
        {"type": "resource_link", "name": "menu", "uri": "file:///menu", "description": "food"},
        "[resource menu at file:///menu: food]",
    ),
    (
        {"type": "resource_link", "name": "menu", "uri": "file:///menu"},
        "[resource menu at file:///menu]",
    ),
    ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, "inside"),
    (
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "MTIzNDU="}},
        "[resource at file:///a, binary, 5 bytes]",
    ),
]


async def test_results_are_read_as_text() -> None:
    """Text stays as it is, other content is named; structured content counts without blocks."""
    structured = {"name": "Zoë"}
    lines = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    async with McpServer(MINI_SERVER).open() as opened:
        give = named(opened)["give"]
        for block, text in BLOCKS:
            assert await call(give, text=json.dumps({"content": [block]})) == text
        for content, text in ((lines, "one\ntwo"), ([], '{"name": "Zoë"}')):
            result = {"content": content, "structuredContent": structured}
            assert await call(give, text=json.dumps(result)) == text
        assert await call(give, text='{"content": []}') == "done"


async def test_what_a_server_sends_cannot_fill_the_models_context() -> None:
    """Of a long result, and of a long description, beginning and end are kept."""
    text = "a" * 10_000 + "b" * 1_000_000 + "c" * 10_000
    async with McpServer(MINI_SERVER).open() as opened:
        give = named(opened)["give"]
        for result in (
            {"content": [{"type": "text", "text": text}]},
            {"content": [], "structuredContent": {"x": text}},
        ):
            read = await call(give, text=json.dumps(result))
            assert len(read) < 16_200
            assert "a" * 7_900 in read
            assert "c" * 7_900 in read
        assert 3_900 < named(opened)["wordy"].description.count("x") <= 4_001


@pytest.mark.parametrize(
    ("mode", "start_s", "told"),
    [
        ("broken", 30.0, "exited with code 2; it said last: 'no such database'"),
        ("mute", 0.5, "did not answer within 0.5 s"),
        ("listless", 30.0, "did not list its tools: unknown: tools/list"),
        ("endless", 30.0, "its list of tools has more than 100 pages"),
    ],
)
async def test_a_server_that_does_not_start(mode: str, start_s: float, told: str) -> None:
    """A server that does not start, or lists no tools, is an error that says why."""
    with pytest.raises(McpServerError) as caught, trio.fail_after(LIMIT_S):
        async with McpServer([*MINI_SERVER, mode], name="mini", start_s=start_s).open():
            pytest.fail("it is open")
    assert str(caught.value) == f"MCP server 'mini': {told}"


async def test_a_program_that_is_missing() -> None:
    """A program that is not there is named."""
    with pytest.raises(McpServerError, match="'no-such-program': FileNotFoundError"):
        async with McpServer(["no-such-program"]).open():
            pytest.fail("it is open")


async def test_a_cancelled_start() -> None:
    """Cancelling while the server starts ends it."""
    with trio.move_on_after(0.3) as scope:
        async with McpServer([*MINI_SERVER, "mute"]).open():
            pytest.fail("it is open")
    assert scope.cancelled_caught
    assert trio.current_time() < scope.deadline + 3.0


# --- how it is written --------------------------------------------------------------------------


async def test_an_unknown_tool_is_named() -> None:
    """A policy for a tool that the server does not have is an error."""
    with pytest.raises(ToolDefinitionError, match=r"a policy for 'ecko', which .* it has a.b, a/b"):
        async with McpServer(MINI_SERVER, policies={"ecko": shield(1.0)}).open():
            pytest.fail("it is open")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "a command or a url=, and exactly one of the two"),
        ({"command": ["a"], "url": "http://b"}, "a command or a url=, and exactly one of the two"),
        ({"command": "python server.py"}, "takes a command as a list"),
        ({"command": "http://b"}, "or url=, not 'http://b'"),
        ({"command": []}, "takes a command as a list"),
        ({"url": "localhost:80"}, "begins with http"),
        ({"url": "http://b", "env": {"A": "1"}}, "env= and cwd="),
        ({"command": ["a"], "headers": {}}, "headers= has no effect"),
        ({"command": ["a"], "start_s": 0}, "start_s="),
    ],
)
def test_what_cannot_be_meant(arguments: dict[str, Any], told: str) -> None:
    """A server that is described wrong is an error that says how to mend it."""
    with pytest.raises(ToolDefinitionError, match=told):
        McpServer(**arguments)


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the error comes where the server is configured, and names the extra."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(McpExtraError, match=r'pip install "bargein\[mcp\]"') as caught:
        McpServer(MINI_SERVER)
    assert caught.value.extra == "mcp"


# --- in a call ----------------------------------------------------------------------------------


async def nothing(call: Call) -> None:
    """Answer a call with silence."""


async def test_what_the_model_is_told() -> None:
    """The result of a call states its outcome: done, failed, cancelled, or lost with its server."""
    async with (
        McpServer(MINI_SERVER).open() as opened,
        open_call(nothing, expect_errors=McpToolError) as caller,
    ):
        runner = ToolRunner(caller.call, opened, source="agent")

        async def result(name: str, cut_after_s: float = LIMIT_S) -> tuple[str | None, bool, str]:
            request = ToolCall(id=name, name=name, arguments={"text": "a"})
            running = runner.start(request, run=None)
            with trio.move_on_after(cut_after_s):
                await running.done.wait()
            if not running.done.is_set():
                running.interrupt("cancel")
            with trio.fail_after(LIMIT_S):
                await running.done.wait()
            final = running.final
            assert final is not None
            return final.outcome, final.error, final.content.partition("\n")[0]

        results = {name: await result(name) for name in ("echo", "refuse", "fail", "die")}
        for cut_after_s in (0.1, 1.0, 10.0):  # the server that died has to be there again
            results["stuck"] = await result("stuck", cut_after_s)
            if results["stuck"][0] != "not_started":
                break
    refused = "McpToolError: The call of 'refuse' failed: unknown: tools/call."
    unknown = (
        "It was cut off by an interruption and may have partially executed; verify before retrying."
    )
    assert results == {
        "echo": ("completed", False, "echo: a"),
        "refuse": ("completed", True, refused),
        "fail": ("completed", True, "no such table"),
        "stuck": ("effect_unknown", False, unknown),
        "die": ("effect_unknown", True, unknown),
    }

"""`bargein calls` and `bargein call`, in a real terminal, over the calls of real workers."""

import json
import re
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest
import trio

from bargein.client import Ended, Spoken, open_caller
from bargein.server import sign_token
from bargein.websocket import open_websocket
from tests.bridge.stopping import PATIENCE_S, port_of, program
from tests.bridge.wires.operators.test_operator_requests import SECRET, Operator

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(sys.platform == "win32", reason="sockets that processes inherit"),
]

AGENT = """
import os
import trio
from bargein import App, current_run
from bargein.events import AgentResponse, UserTranscriptionReceived


async def answer(call):
    agent = call.bridge(name="counter")

    async def reply(message):
        if message.event.content == "pay":
            verdict = await call.permissions.ask(
                "q1", "pay", {"euros": 7}, current_run(), by="operator"
            )
            yield AgentResponse(content=f"It is {verdict}.")
            return
        yield AgentResponse(content=f"process {os.getpid()} ")
        for number in range(2_000):
            yield AgentResponse(content=f"{number} ")
            await trio.sleep(0.05)

    agent.on(UserTranscriptionReceived).stream(reply).broadcast()


app = App(answer)
"""


def token(*rights, user="grace"):
    return sign_token(SECRET, user, lasts_s=600, rights=rights)


@pytest.fixture
def secret(monkeypatch):
    """The secret of signed tokens, for the server."""
    monkeypatch.setenv("BARGEIN_TOKEN_SECRET", SECRET)


@asynccontextmanager
async def two_workers(folder, most=("--max-calls", "4")):
    """Two workers with a talking call each; yields the server, its port and the process ids."""
    (folder / "agent.py").write_text(AGENT)
    with program(folder, "serve", "--port", "0", "--workers", "2", *most) as server:
        both = partial(server.until, lambda: server.text.count('"server_started"') == 2)
        await trio.to_thread.run_sync(both)
        port = port_of(server.text)
        async with AsyncExitStack() as stack:
            callers, others = {}, []
            while len(callers) < 2:  # a worker with its share leaves others to the other one
                user = f"user-{len(callers)}"
                caller = await stack.enter_async_context(
                    open_caller(f"ws://127.0.0.1:{port}/ws", mode="text", token=token(user=user))
                )
                caller.write("count")
                told = await caller.wait_for(Spoken, lambda m: "process" in m.text)
                pid = int(re.search(r"process (\d+)", told.message.text)[1])
                if pid in callers:
                    others.append(caller)
                else:
                    caller.pid = pid
                    callers[pid] = caller
            for caller in others:
                caller.hang_up()
                await caller.wait_for(Ended)
            yield server, port, [*callers.values()]


async def run_cli(folder, port, *arguments, rights=("operator", "watch", "control"), **options):
    """Run a command in a terminal, and return its exit code and what it wrote."""
    url = f"http://127.0.0.1:{port}"
    with program(
        folder, *arguments, "--url", url, "--token", token(*rights), terminal=True, **options
    ) as command:
        code = await trio.to_thread.run_sync(command.code)
        return code, command.text


async def test_calls_of_all_workers_are_listed_steered_and_watched(tmp_path, secret):
    """From one address, in a terminal, whichever worker the operator's connection lands on."""
    with trio.fail_after(3 * PATIENCE_S):
        async with two_workers(tmp_path) as (_server, port, callers):
            code, text = await run_cli(tmp_path, port, "calls")
            assert code == 0, text
            assert re.match(r"call +node +state +seconds +user\r\n", text)
            rows = sorted((line.split() for line in text.splitlines()[1:]), key=lambda row: row[4])
            assert [row[4] for row in rows] == ["user-0", "user-1"]
            assert [int(row[1].rpartition(".")[2]) for row in rows] == [c.pid for c in callers]
            assert {row[2] for row in rows} <= {"thinking", "speaking"}
            for row, caller in zip(rows, callers, strict=True):
                code, text = await run_cli(tmp_path, port, "call", row[0], "cancel")
                assert (code, text.splitlines()[-1]) == (0, "settled"), text
                assert text.startswith("cancel: done; answer")
                said = ("call", row[0], "say", "I am here.")
                code, text = await run_cli(tmp_path, port, *said)
                assert (code, text.splitlines()[-1]) == (0, "settled: completed"), text
                await caller.wait_for(Spoken, lambda m: "here." in m.text)
            # One of the two is on another worker than the connection that watches both.
            async with watching_socket(port, "operator", "watch") as operator:
                for row, caller in zip(rows, callers, strict=True):
                    await operator.ask("watch", "watching", call=row[0])
                    caller.write("count")
                    await operator.next("seen", name="agent.response", call=row[0])
            await watch_to_the_end(tmp_path, port, rows[0][0], callers[0])


async def watch_to_the_end(folder, port, call, caller):
    """Watch a call in a terminal until its caller hangs up."""
    options = ("--url", f"http://127.0.0.1:{port}", "--token", token("operator", "watch"))
    with program(folder, "call", call, "watch", *options, terminal=True) as seen:
        await trio.to_thread.run_sync(seen.until, "agent.response counter")
        caller.hang_up()
        assert await trio.to_thread.run_sync(seen.code) == 0
        assert seen.text.splitlines()[-1] == "the call is over: hangup"


@asynccontextmanager
async def watching_socket(port, *rights):
    """The socket of an operator with these rights."""
    headers = {"Authorization": f"Bearer {token(*rights)}"}
    async with open_websocket(f"ws://127.0.0.1:{port}/watch", headers=headers) as socket:
        yield Operator(socket)


async def test_questions_of_all_workers_are_answered_and_mistakes_named(tmp_path, secret):
    """An operator allows what either worker asks; each mistake is one line, and exit code 1."""
    mistakes = [
        (("call", "nobody", "pause"), ("operator", "control"), "there is no call 'nobody'"),
        (("calls",), ("control",), "lacks the right 'operator'"),
    ]
    with trio.fail_after(3 * PATIENCE_S):
        async with two_workers(tmp_path) as (_server, port, callers):
            async with watching_socket(port, "operator") as operator:
                for caller in callers:
                    caller.control("cancel")
                    caller.write("pay")
                    asked = await operator.next("question")
                    about = {"call": asked["call"], "id": "q1"}
                    asked = await operator.ask("arguments", "arguments", **about)
                    assert json.loads(asked["text"]) == {"euros": 7}
                    closed = await operator.ask("permission", "closed", **about, allow=True)
                    assert (closed["call"], closed["verdict"]) == (about["call"], "allowed")
                    await caller.wait_for(Spoken, lambda m: "allowed" in m.text)
            for arguments, rights, said in mistakes:
                code, text = await run_cli(tmp_path, port, *arguments, rights=rights)
                assert code == 1
                assert re.fullmatch(rf"error: .*{re.escape(said)}.*\r\n", text), text
    code, text = await run_cli(tmp_path, port, "calls")
    assert (code, text.startswith("error: no server answers at")) == (1, True), text

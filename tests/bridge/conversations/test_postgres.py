"""Conversations in PostgreSQL, on a real server."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import trio

from bargein import AgentEntry, History, JobEntry, UserEntry
from bargein.conversations import ConversationBusyError, PostgresConversations
from bargein.events import ToolCall, ToolResult

psycopg = pytest.importorskip("psycopg", reason="needs the extra postgres")

pytestmark = pytest.mark.proof

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


class Server:
    """A PostgreSQL server in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder / "data"
        self.as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        self.run("initdb", "-D", str(self.folder), "-A", "trust", "-U", "voice", "--no-sync")

    @property
    def url(self) -> str:
        return f"postgresql://voice@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        command = [*self.as_user, str(PROGRAMS[-1] / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd="/", timeout=60)

    def processes(self) -> list[int]:
        """Return the server and its children."""
        parent = int((self.folder / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [parent, *map(int, children)]

    def control(self, *arguments: str) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k ''"
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", str(self.folder), "-w", "-l", log, "-o", options, *arguments)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not PROGRAMS:
        assert "CI" not in os.environ, "apt-get install postgresql"
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    folder = Path("/tmp") / f"bargein-postgres-{os.getpid()}"
    folder.mkdir()
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    found = Server(folder)
    found.control("start")
    yield found
    found.control("stop", "-m", "immediate")
    shutil.rmtree(folder)


def words(entries) -> list[str]:
    return [entry.content for entry in entries]


async def test_a_conversation_comes_back(server):
    """What was written is there when it is opened again, in order and as last written."""
    store = PostgresConversations(server.url)
    for id in ("a", "a\0b", "x" * 256, "}\n"):
        async with store.open_conversation(id) as conversation:
            assert conversation.entries == ()
            now_s = trio.current_time()
            conversation.write(0, UserEntry(now_s, "one\0"))
            conversation.write(1, UserEntry(now_s, "two"))
            conversation.write(0, UserEntry(now_s, "uno\0"))
        async with store.open_conversation(id) as conversation:
            assert words(conversation.entries) == ["uno\0", "two"]
            assert abs(conversation.entries[0].at_s - now_s) < 0.01
            conversation.write(2, UserEntry(now_s, "three"))
        async with store.open_conversation(id) as conversation:
            assert words(conversation.entries) == ["uno\0", "two", "three"]
    async with store.open_conversation("empty"):
        pass
    assert [(i.id, i.entries) for i in await store.list()] == [
        ("}\n", 3),
        ("x" * 256, 3),
        ("a\0b", 3),
        ("a", 3),
    ]
    for info in await store.list():
        await store.delete(info.id)
    assert await store.list() == []


async def test_a_conversation_is_open_once(server):
    """A second call is refused with an error that says so, whatever store object it uses."""
    store, same = PostgresConversations(server.url), PostgresConversations(server.url)
    async with store.open_conversation("a"):
        with pytest.raises(ConversationBusyError, match="'a' is open in another call"):
            async with same.open_conversation("a"):
                raise AssertionError
        with pytest.raises(ConversationBusyError):
            await same.delete("a")
        async with same.open_conversation("b"):
            pass
    async with same.open_conversation("a"):
        pass


async def test_an_answer_grows_and_repairs_are_written(server):
    """An answer that grows is there as it was last; a job that was lost keeps its place."""
    store = PostgresConversations(server.url)
    async with store.open_conversation("grows") as conversation:
        history = History()
        history.on_change = conversation.write
        history.add_tool_call(ToolCall(name="look", id="7"))
        away = ToolResult(name="look", id="7", content="later", outcome="backgrounded")
        history.add_tool_result(away)
        for number in range(300):
            text = "word " * number
            conversation.write(1, AgentEntry(0.0, 2, "agent", text, text))
            await trio.lowlevel.checkpoint()
    async with store.open_conversation("grows") as conversation:
        assert [type(e) for e in conversation.entries][-1] in (JobEntry, AgentEntry)
        assert conversation.entries[1].generated == "word " * 299


async def test_a_server_that_is_killed_costs_nothing(server):
    """The call goes on, is told once, and all it said is saved once the server is back."""
    store = PostgresConversations(server.url)
    troubles: list[str] = []
    with structlog.testing.capture_logs() as logs:
        async with store.open_conversation("killed") as conversation:
            conversation.on_trouble = troubles.append
            conversation.write(0, UserEntry(0.0, "before"))
            await trio.sleep(0.2)
            await trio.to_thread.run_sync(server.control, "stop", "-m", "immediate")
            for number in range(1, 300):
                conversation.write(number, UserEntry(0.0, str(number)))
            with trio.fail_after(30):
                while not troubles:  # noqa: ASYNC110 - told by another task
                    await trio.sleep(0.01)
            await trio.to_thread.run_sync(server.control, "start")
            with trio.fail_after(30):
                while logs[-1]["event"] != "conversation_saved_again":  # noqa: ASYNC110
                    await trio.sleep(0.01)
    assert len(troubles) == 1
    async with store.open_conversation("killed") as conversation:
        assert words(conversation.entries) == ["before", *map(str, range(1, 300))]


async def test_a_server_that_stands_still_holds_no_call_up(server):
    """Stopped for 8 s, it costs no step of the loop and no word; what was in flight comes once."""
    store = PostgresConversations(server.url)
    troubles: list[str] = []
    with structlog.testing.capture_logs() as logs:
        await stand_still(server, store, logs, troubles)
    async with store.open_conversation("stopped") as conversation:
        assert words(conversation.entries) == ["before", *map(str, range(1, 161))]


async def stand_still(server, store, logs, troubles):
    """Write while the server is stopped, until all is saved."""
    async with store.open_conversation("stopped") as conversation:
        conversation.on_trouble = troubles.append
        conversation.write(0, UserEntry(0.0, "before"))
        await trio.sleep(0.2)
        stopped = server.processes()
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        late_s = 0.0
        try:
            for number in range(1, 161):
                conversation.write(number, UserEntry(0.0, str(number)))
                due_s = trio.current_time() + 0.05
                await trio.sleep_until(due_s)
                late_s = max(late_s, trio.current_time() - due_s)
        finally:
            for process in stopped:
                os.kill(process, signal.SIGCONT)
        assert late_s < 1.0
        assert len(troubles) == 1
        assert "does not answer" in troubles[0]
        with trio.fail_after(30):
            while logs[-1]["event"] != "conversation_saved_again":  # noqa: ASYNC110
                await trio.sleep(0.05)


KILLED = """
import sys, trio
from bargein import UserEntry
from bargein.conversations import PostgresConversations

async def main():
    async with PostgresConversations(sys.argv[1]).open_conversation("dead") as conversation:
        conversation.write(0, UserEntry(0.0, "kept"))
        await trio.sleep(1)
        print("written", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


async def test_a_process_that_is_killed_locks_nobody_out(server):
    """Its lock goes with its connection, and what it wrote is there."""
    command = [sys.executable, "-c", KILLED, server.url]
    store = PostgresConversations(server.url)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - it is the test's own
        assert process.stdout is not None
        assert await trio.to_thread.run_sync(process.stdout.readline) == b"written\n"
        with pytest.raises(ConversationBusyError):
            async with store.open_conversation("dead"):
                raise AssertionError
        process.kill()
    with trio.fail_after(10):
        while True:
            try:
                async with store.open_conversation("dead") as conversation:
                    assert words(conversation.entries) == ["kept"]
                    break
            except ConversationBusyError:
                await trio.sleep(0.05)


def end_sessions(server):
    """End all sessions that hold a conversation, as an operator of the database may."""
    with psycopg.connect(server.url, autocommit=True) as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        )


async def test_nobody_writes_over_another_call(server):
    """Whose session was lost, and whose conversation another call has, writes nothing to it."""
    store = PostgresConversations(server.url)
    async with store.open_conversation("stolen") as conversation:
        conversation.write(0, UserEntry(0.0, "one"))
        await trio.sleep(0.2)
        end_sessions(server)
        async with store.open_conversation("stolen") as other:
            assert words(other.entries) == ["one"]
            other.write(1, UserEntry(0.0, "two"))
        conversation.write(1, UserEntry(0.0, "late"))
        await trio.sleep(0.5)
    async with store.open_conversation("stolen") as conversation:
        assert words(conversation.entries) == ["one", "two"]


async def test_a_server_that_is_away_lets_the_call_begin():
    """Without the server a call begins at once, and is told."""
    store = PostgresConversations("postgresql://voice@127.0.0.1:1/postgres")
    troubles: list[str] = []
    with trio.fail_after(20):
        async with store.open_conversation("a") as conversation:
            conversation.on_trouble = troubles.append
            conversation.write(0, UserEntry(0.0, "x"))
    assert "cannot be loaded and saved" in troubles[0]

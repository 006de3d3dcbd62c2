"""The worker of a page's call is killed; the page goes on with its call, in real Chromium."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bridge.stopping import port_of, program

from .line_server import STORY
from .test_line import STATE, forgive_network

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sockets that processes inherit")

HERE = Path(__file__).parent
AGENT = f"""
import os
import sys
from pathlib import Path

from bargein import App

sys.path.insert(0, {str(HERE)!r})
from line_server import Storyteller, Tone


async def answer(call):
    Path(__file__).with_name("owner").write_text(str(os.getpid()))
    await Storyteller().answer(call)


app = App(answer, speech=Tone())
"""


def test_a_page_keeps_its_call_when_its_worker_is_killed(
    tmp_path: Path, open_at: Callable[[int], Any]
) -> None:
    """The story that was begun is heard to its end, nothing of it stands on the page twice, and
    the agent answers again."""
    (tmp_path / "agent.py").write_text(AGENT)
    with program(tmp_path, "serve", "--port", "0", "--workers", "2") as server:
        server.until(lambda: server.text.count('"server_started"') == 2)
        with open_at(port_of(server.text)) as open_page:
            call = open_page("", "?raw=1", mic="none")
            call.start()
            call.type("tell")
            call.wait("bargein.log.some((e) => e.ev === 'player_position' && e.played_ms > 1500)")
            os.kill(int((tmp_path / "owner").read_text()), signal.SIGKILL)
            call.wait("bargein.log.some((e) => e.ev === 'line_back')", 20)
            call.wait("bargein.log.some((e) => e.ev === 'player_done')", 60)
            call.wait(f"{STATE} === 'idle'", 20)
            lost, back = (call.log(ev)[0]["wall_ms"] for ev in ("line_lost", "line_back"))
            print(f"back after {back - lost:.0f} ms")
            text = " ".join(call.page.inner_text("#transcript").split())
            assert text.count("Once upon a time") == 1
            assert text.count("all day long.") == 1
            assert "Never heard" not in text
            heard = " ".join(call.page.locator(".agent .heard").all_inner_texts())
            assert heard.split() == STORY.split()  # each word stands there as heard, once
            call.type("again")
            call.wait("document.querySelectorAll('.user').length === 2")
            call.wait(f"{STATE} === 'speaking'", 20)
            forgive_network(call)

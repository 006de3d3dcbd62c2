"""Uses the installed wheel from an empty folder; run by `make wheel`, with the core alone."""

import subprocess
import sys
from importlib.metadata import entry_points, requires
from pathlib import Path

import trio
from trio.testing import MockClock

import bridge
import nodes
import routes
from bridge.events import AgentResponse, UserStartedSpeaking, UserStoppedSpeaking
from bridge.testing import open_call

CORE = {"trio", "pydantic", "websockets", "structlog"}


async def answer(call: bridge.Call) -> None:
    """Count aloud until interrupted."""

    async def count(_: object):  # type: ignore[no-untyped-def]  # a script, not a library
        for number in range(100):
            await trio.sleep(0.1)
            yield AgentResponse(content=f"{number} ")

    agent = call.bridge(name="agent")
    agent.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking).stream(count).broadcast()


async def main() -> None:
    """Interrupt the agent, and look at what was heard."""
    async with open_call(answer) as caller:
        await caller.says("count")
        await caller.says("stop", at_s=3)
        await caller.quiet()
        (record,) = caller.call.history.interruptions
        assert record.heard.startswith("0 1 2"), record
        assert record.generated.startswith(record.heard), record


def check() -> None:
    """Check the packages, their data, the commands and one conversation."""
    here = Path.cwd()
    assert not any(here.iterdir()), f"{here} is not empty"
    for package in (bridge, nodes, routes):
        home = Path(str(package.__file__)).parent
        assert "site-packages" in home.parts, home
        assert (home / "py.typed").is_file(), home
    assert (Path(str(bridge.__file__)).parent / "page" / "index.html").is_file()
    examples = Path(str(nodes.__file__)).parent / "examples"
    assert (examples / "cafe.py").is_file()
    assert (examples / "cafe_grammar" / "__init__.py").is_file()
    core = {
        need.split(">")[0].split("<")[0] for need in requires("bargein") or () if ";" not in need
    }
    assert core == CORE, core
    names = {point.name for point in entry_points(group="bargein.commands")}
    assert names == {"models", "demo"}, names
    help_text = subprocess.run(
        [sys.executable, "-m", "bridge", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "serve" in help_text, help_text
    assert "models" in help_text, help_text
    demo = subprocess.run(
        [sys.executable, "-m", "bridge", "demo"], capture_output=True, text=True, check=False
    )
    assert demo.returncode == 1, demo
    assert len(demo.stderr.splitlines()) == 1, demo.stderr
    assert "bargein[demo]" in demo.stderr, demo.stderr
    trio.run(main, clock=MockClock(autojump_threshold=0))
    print("the wheel works on its own, with its four dependencies")


if __name__ == "__main__":
    check()

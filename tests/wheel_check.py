"""Uses the installed wheel from an empty folder; run by `make wheel`, with the core alone."""

import subprocess
import sys
from importlib.metadata import entry_points, files, requires
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from trio.testing import MockClock

import bargein
from bargein.events import AgentResponse, UserStartedSpeaking, UserStoppedSpeaking
from bargein.testing import open_call

CORE = {"trio", "pydantic", "websockets", "structlog"}

AGENT = """
import bridge, nodes, routes, trio
from trio.testing import MockClock
from bargein import Call
from bargein.testing import open_call

async def answer(call: Call) -> None:
    call.say("hello")

async def main() -> None:
    async with open_call(answer) as caller:
        await caller.quiet()
    ours = routes.OF_THE_PROJECT + nodes.OF_THE_PROJECT + bridge.OF_THE_PROJECT
    print(ours, caller.heard)

trio.run(main, clock=MockClock(autojump_threshold=0))
"""


async def answer(call: bargein.Call) -> None:
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


def check_files() -> None:
    """Check that real files lie under ``bargein`` and nothing else lies beside it."""
    home = Path(str(bargein.__file__)).parent
    assert "site-packages" in home.parts, home
    assert (home / "py.typed").is_file(), home
    for name in ("bridge", "nodes", "routes"):
        assert (home / name / "__init__.py").is_file(), name
        assert not (home / name).is_symlink(), name
    assert (home / "bridge" / "page" / "index.html").is_file()
    assert (home / "nodes" / "examples" / "cafe.py").is_file()
    assert (home / "nodes" / "examples" / "cafe_grammar" / "__init__.py").is_file()
    tops = {file.parts[0] for file in files("bargein") or ()}
    tops -= {top for top in tops if top.startswith("..") or top.endswith(".dist-info")}
    assert tops == {"bargein"}, tops


def check_beside_others() -> None:
    """Check that a project's own ``routes.py``, ``nodes.py`` and ``bridge/`` do not matter."""
    with TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "routes.py").write_text("OF_THE_PROJECT = 1\n")
        (project / "nodes.py").write_text("OF_THE_PROJECT = 2\n")
        (project / "bridge").mkdir()
        (project / "bridge" / "__init__.py").write_text("OF_THE_PROJECT = 3\n")
        (project / "agent.py").write_text(AGENT)
        ran = subprocess.run(
            [sys.executable, "agent.py"], cwd=project, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip() == "6 hello", ran.stdout


def check() -> None:
    """Check the packages, their data, the commands and one conversation."""
    here = Path.cwd()
    assert not any(here.iterdir()), f"{here} is not empty"
    check_files()
    core = {
        need.split(">")[0].split("<")[0] for need in requires("bargein") or () if ";" not in need
    }
    assert core == CORE, core
    names = {point.name for point in entry_points(group="bargein.commands")}
    assert names == {"models", "demo", "eval", "phone", "dial"}, names
    help_text = subprocess.run(
        [sys.executable, "-m", "bargein", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert "serve" in help_text, help_text
    assert "models" in help_text, help_text
    demo = subprocess.run(
        [sys.executable, "-m", "bargein", "demo"], capture_output=True, text=True, check=False
    )
    assert demo.returncode == 1, demo
    assert len(demo.stderr.splitlines()) == 1, demo.stderr
    assert "bargein[demo]" in demo.stderr, demo.stderr
    check_beside_others()
    trio.run(main, clock=MockClock(autojump_threshold=0))
    print("the wheel works on its own, with its four dependencies")


if __name__ == "__main__":
    check()

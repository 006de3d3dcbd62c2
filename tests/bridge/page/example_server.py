"""A real server with one of the examples; only its voice is scripted.

Run as a program with the name of an example it prints its port, then serves until it is killed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import structlog
import trio

from bridge import App
from bridge.server import open_server

EXAMPLES = Path(__file__).parents[3] / "examples"
HERE = Path(__file__).parent


def load(path: Path) -> object:
    """Returns a file as a module."""
    spec = importlib.util.spec_from_file_location(f"_page_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def main(name: str) -> None:
    """Serves on a free port of the loopback interface and prints that port."""
    example, voice = load(EXAMPLES / f"{name}.py"), load(HERE / "agent_server.py")
    app = App(example.answer, speech=voice.Tone(), name=example.app.name)  # type: ignore[attr-defined]
    async with open_server(app, port=0) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


if __name__ == "__main__":
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(30),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    trio.run(main, sys.argv[1])

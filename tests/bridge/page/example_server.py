"""A real server with one of the examples; only its voice is scripted.

Run as a program with the name of an example it prints its port, then serves until it is killed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from bargein import App

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


def main(name: str) -> None:
    """Serves an example with the voice of the other server."""
    example, other = load(EXAMPLES / f"{name}.py"), load(HERE / "agent_server.py")
    other.run(App(example.answer, speech=other.Tone(), name=example.app.name))  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(sys.argv[1])

"""The names by which workers find functions."""

from __future__ import annotations

import functools
import json
import shlex
import types

import pytest

from bargein.nodes.tools._processes._reference import main_script, reference_of


def test_a_function_of_a_module_is_found_by_its_name():
    """Module and qualified name; a path of both is taken as it is, without importing anything."""
    assert reference_of(json.dumps) == ("json", "dumps")
    assert reference_of(json.JSONDecoder.decode) == ("json.decoder", "JSONDecoder.decode")
    assert reference_of("no.such:thing.at_all") == ("no.such", "thing.at_all")


def test_what_stands_in_the_place_of_a_function_leads_to_it(monkeypatch):
    """A function is found through the decorated one, or the tool, that has taken its name."""

    @functools.wraps(shlex.quote)
    def wrapped(text: str) -> str:
        raise NotImplementedError

    original = shlex.quote
    monkeypatch.setattr(shlex, "quote", wrapped)
    assert reference_of(original) == ("shlex", "quote.__wrapped__")
    monkeypatch.setattr(shlex, "quote", types.SimpleNamespace(function=original))
    assert reference_of(original) == ("shlex", "quote.function")


async def a_sync_looking_one() -> None:
    pass


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("json", "write 'module:qualname'"),
        (":dumps", "write 'module:qualname'"),
        ("json:", "write 'module:qualname'"),
        (lambda: None, "define it with def at the top of a module"),
        (functools.partial(json.dumps, 1), "define it with def at the top of a module"),
        (a_sync_looking_one, "is async"),
    ],
)
def test_what_no_process_can_import_is_refused(function, problem):
    """The error says what to do."""
    with pytest.raises(ValueError, match=problem):
        reference_of(function)


def test_the_main_script_is_a_file_and_its_package(monkeypatch):
    """It is what Python was started with; there is none where code was typed in."""
    main = types.ModuleType("__main__")
    monkeypatch.setitem(__import__("sys").modules, "__main__", main)
    assert main_script() is None
    main.__file__, main.__package__ = "/a/b.py", None
    assert main_script() == ("/a/b.py", "")
    main.__package__ = "a"
    assert main_script() == ("/a/b.py", "a")

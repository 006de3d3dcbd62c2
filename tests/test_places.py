"""Whoever looks for a class or for a number opens the right file first.

A class is found by its file's name, and a number stands where it acts; if not, the file that acts
names the one that has the number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from docs.scripts import number_reference
from tests.house import House

pytestmark = pytest.mark.gate

LARGE_LINES = 30
"""A class of fewer lines may stand beside what it belongs to."""

BY_RULE = re.compile(r"bridge\.languages\.[a-z]+$|nodes\.vendors\.\w+\.phone$")
"""A language's file is named by its tag, and a carrier's class by the carrier."""

ANOTHER_WORD = {
    "bridge.call._transfer_and_dtmf": "named for the two things that its CallActions do",
    "nodes.fakes.platforms": "what the fakes of all platforms share",
    "bridge.cli._main": "named for its function, which is the program",
}
"""Files whose classes share no word with them, and why."""

_ENDING = re.compile(r"(ies|([a-z])\2(?:er|ing|ed)|ing|er|or|ed|ion|ive|al|e|y|s)$")


@cache
def house() -> House:
    """Return the source of this checkout."""
    return House(Path(__file__).parents[1])


def stems(name: str) -> set[str]:
    """Return the words of a name, in either spelling, each without its endings."""
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name.rpartition(".")[2])
    return {_ENDING.sub(r"\2", _ENDING.sub(r"\2", word.lower())) for word in found} - {""}


def share_a_word(file: str, cls: str) -> bool:
    """Whether a form of one of the file's words is in the name of a class."""
    joined = cls.lower()
    return any(word in stems(cls) or (len(word) > 3 and word in joined) for word in stems(file))


def named_by(node: ast.ClassDef) -> list[str]:
    """Return the names by which one finds a class: its own, and its bases'."""
    bases = (b.value if isinstance(b, ast.Subscript) else b for b in node.bases)
    return [node.name, *map(ast.unparse, bases)]


def lines(node: ast.ClassDef) -> int:
    """Return how many lines a class has."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def files_with_classes() -> Iterator[tuple[str, list[ast.ClassDef]]]:
    """Yield each file that has a large class, with those and the public ones."""
    for name, path in house().paths.items():
        classes = [n for n in house().trees[name].body if isinstance(n, ast.ClassDef)]
        if path.name == "__init__.py" or BY_RULE.match(name):
            continue
        if any(lines(node) >= LARGE_LINES for node in classes):
            yield name, [n for n in classes if lines(n) >= LARGE_LINES or n.name[0] != "_"]


def test_a_class_is_found_by_the_name_of_its_file():
    """A large or public class of a file shares a word with it: one finds either by the other."""
    files = dict(files_with_classes())
    assert len(files) > 300
    wrong = {
        file: [node.name for node in classes]
        for file, classes in files.items()
        if not any(share_a_word(file, name) for node in classes for name in named_by(node))
    }
    assert wrong.keys() <= ANOTHER_WORD.keys(), {
        file: names for file, names in wrong.items() if file not in ANOTHER_WORD
    }


@pytest.mark.parametrize(
    ("file", "cls", "found"),
    [
        ("bridge.control._usage_meter", "UsageMeter", True),
        ("bridge.rehearsal._recording", "Recorder", True),
        ("bridge.websocket._websocket", "WebSocket", True),
        ("nodes._speculation", "SpeculativeModel", True),
        ("nodes.vendors.azure.voice", "AzureTTS", False),
        ("bridge.control._verb_execution", "Control", False),
    ],
)
def test_names_share_forms_of_a_word(file, cls, found):
    """Plurals and endings count; a folder's name does not."""
    assert share_a_word(file, cls) is found


# --- numbers ------------------------------------------------------------------------------------


MAY_STAND_APART = {
    "bridge.wires.harness._retell_codec": "a number of the protocol stands with its codec",
    "bridge.wires.text._text_transport": "a time of all text wires, and one needs it so far",
    "bridge.websocket._connection": "the close codes of RFC 6455 stand together",
    "routes._chain_runtime": "it acts by these two, which open_router() takes as arguments",
    "routes._message_sinks": "the queue stands there, and its default beside it",
}
"""Files with constants that only one other uses, and why."""

HOMONYMS = {"after_s", "end_of_turn_s", "late_s", "quiet_s", "unwind_s"}
"""Names of settings that something else has, too."""


def constants() -> dict[tuple[str, str], int]:
    """Return how often each constant that is a number is used in its own file."""
    found = {}
    for name, tree in house().trees.items():
        loads = [
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        ]
        for node in tree.body:
            match node:
                case ast.Assign([ast.Name(id)], value) | ast.AnnAssign(ast.Name(id), _, value):
                    if id.isupper() and value is not None and _is_number(value):
                        found[name, id] = loads.count(id)
    return found


def _is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def test_a_number_stands_where_it_acts():
    """A constant is not in one file and its only use in another, where somebody would look."""
    users: dict[tuple[str, str], set[str]] = {}
    for name, tree in house().trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                base = house().base_of(name, node)
                for alias in node.names:
                    users.setdefault((base, alias.name), set()).add(name)
    found = constants()
    assert len(found) > 500
    apart = {place: users[place] for place, own in found.items() if not own and place in users}
    alone = {place: files for place, files in apart.items() if len(files) == 1}
    assert {file for file, _ in alone} <= MAY_STAND_APART.keys(), alone


UNIT = re.compile(r"\w+_(s|ms|bytes|chars|words|db|hz)$|max_\w+$")
"""Names of settings that say by themselves that they are limits or times."""


def test_who_goes_by_a_setting_names_what_has_it():
    """A file that reads a time or limit from an object names its class, or the file it is in."""
    owners: dict[str, set[tuple[str, str]]] = {}
    for settings in number_reference.settings().values():
        for one in settings:
            if one.owner[0].isupper() and UNIT.match(one.name):
                owners.setdefault(one.name, set()).add((one.owner, Path(one.file).stem))
    silent = []
    for name, tree in house().trees.items():
        read = {n.attr: n for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        own = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg | ast.keyword)}
        own |= {
            n.target.id
            for n in ast.walk(tree)
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
        }
        text = house().texts[name]
        for attribute in (read.keys() & owners.keys()) - own - HOMONYMS:
            holder = ast.unparse(read[attribute].value).rpartition(".")[2]
            if len(owners[attribute]) == 1 and holder != "self":
                [(owner, file)] = owners[attribute]
                if owner not in text and file not in text and holder.lower() != owner.lower():
                    silent.append(f"{name}: {attribute} of {owner} in {file}")
    assert not silent, "say in its docstring where the number is"

"""An object's fields are written by its own methods: others call a verb."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import bargein

HOME = Path(bargein.__file__ or "").parent
ROOTS = [HOME / name for name in ("bridge", "nodes", "routes")]

OF_TRIO = {
    *("custom_sleep_data", "deadline", "shield", "total_tokens"),
    *("autojump_threshold", "rate"),
}
"""What trio lets its users write: of tasks, of scopes, of a limiter, and of a test's clock."""

MAPPINGS_OF_LIBRARIES = {"headers", "modules"}
"""Headers of an HTTP response, and Python's modules: their libraries offer no other way."""

ASKED_BACK = {"prepare", "spare"}
"""Fields for a function that an object asks its owner; so are all that begin with ``on_``."""

KEPT_BY_ITS_OWNER = {"segment", "last", "segments[-1]", "metrics", "statistics"}
"""Plain records: the pieces of an utterance, which only that has, and counters."""

MAKERS = {"cls", "copy", "__new__"}
"""Besides classes, what makes an object that nobody else has yet."""


def written() -> Iterator[str]:
    """Yield each assignment to a field of an object that another file defines."""
    for root in ROOTS:
        for path in sorted(root.rglob("*.py")):
            if "examples" in path.parts or "_child" in path.name:
                continue
            tree = ast.parse(path.read_text("utf-8"))
            own = set(_own_fields(tree))
            for target in _writes(tree):
                if target.attr not in own and not _is_free(target):
                    yield f"{path.relative_to(root)}:{target.lineno} {ast.unparse(target)}"


def _is_free(target: ast.Attribute) -> bool:
    """Whether a field is one that others may write."""
    free = OF_TRIO | MAPPINGS_OF_LIBRARIES | ASKED_BACK
    if target.attr in free or target.attr.startswith(("on_", "__")):
        return True
    return ast.unparse(target.value).removeprefix("self.").lstrip("_") in KEPT_BY_ITS_OWNER


def _writes(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Yield the fields that functions write, but for those of what they have made themselves."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            made = {"self", *_made_in(function)}
            for node in ast.walk(function):
                for target in _targets(node):
                    field = target
                    while isinstance(field, ast.Subscript):  # an item of a field's value
                        field = field.value
                    if isinstance(field, ast.Attribute) and _name(field.value) not in made:
                        yield field


def _own_fields(tree: ast.Module) -> Iterator[str]:
    """Yield the fields that the classes of a file have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    yield inner.target.id
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and _name(target.value) == "self":
                yield target.attr


def _made_in(function: ast.AST) -> Iterator[str]:
    """Yield the names of what a function makes by calling a class, or defines inside."""
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef) and node is not function:
            yield node.name
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=True))
                yield from (_name(left) for left, right in pairs if _makes(right))


def _makes(value: ast.expr) -> bool:
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return _makes(body) and _makes(orelse)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in MAKERS or name.lstrip("_")[:1].isupper()
    return False


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            for target in targets:
                yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            yield target


def _name(owner: ast.expr) -> str:
    return owner.id if isinstance(owner, ast.Name) else ""


HAND_ON_THE_CALL = {
    "evaluation/_replay.py": "it declares the agent of its calls, as users do",
    "speech/_local_speech.py": "a speech stack is attached to a call",
    "speech/_streaming_speech.py": "as above",
    "tools/_tool_context.py": "what tools are given has the call, for what users write",
    "tools/_tool_runner.py": "makes that",
    "tools/_worker_tool.py": "keeps one worker for each call",
    "user_turns/_turn_taking.py": "a turn taker is attached to a call",
}
"""Files of nodes that name ``Call``, and why; every other part gets what it needs of it."""

BEHIND_THE_BRIDGE = {"control", "delivery", "permissions", "questions", "router", "speaking"}
"""Parts of a call that no ear, no voice and no turn taker asks: its bridge has what it needs."""

ENGINES = ("ears", "speech", "user_turns", "voices")


def _nodes() -> Iterator[tuple[str, ast.Module]]:
    root = HOME / "nodes"
    for path in sorted(root.rglob("*.py")):
        if "examples" not in path.parts:
            yield str(path.relative_to(root)), ast.parse(path.read_text("utf-8"))


def test_parts_of_a_node_get_what_they_need_of_a_call():
    """Few files name the whole ``Call``; the others have a protocol, or arguments, instead."""
    found = {
        name
        for name, tree in _nodes()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and "Call" in {alias.name for alias in node.names}
    }
    assert found == HAND_ON_THE_CALL.keys()


def test_engines_find_on_their_bridge_what_they_need():
    """An ear or a voice of yours can do what ours do: they ask no part of the call behind it."""
    found = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, tree in _nodes()
        if name.startswith(ENGINES)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in BEHIND_THE_BRIDGE
        and ast.unparse(node.value).endswith(("call", "bridge"))
    ]
    assert found == []


def test_nobody_writes_the_fields_of_another():
    """No code assigns to a field of an object whose class stands in another file."""
    assert list(written()) == []


def test_nobody_imports_a_private_name_of_another_file():
    """What one file needs of another has no underscore; of objects, ruff's SLF001 says the same."""
    found = [
        f"{path.relative_to(root)}: {ast.unparse(node)}"
        for root in ROOTS
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.level or node.module.startswith("bargein"))
        for alias in node.names
        if alias.name.startswith("_") and not _is_module(root, path, node, alias.name)
    ]
    assert found == []


def _is_module(root: Path, path: Path, node: ast.ImportFrom, name: str) -> bool:
    """Whether an import is that of a whole module, whose names are what counts."""
    parts = (node.module or "").removeprefix("bargein.").split(".") if node.module else []
    folder = path.parents[node.level - 1] if node.level else root.parent
    return folder.joinpath(*parts, f"{name}.py").is_file()

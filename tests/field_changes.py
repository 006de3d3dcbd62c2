"""What functions change: the fields of objects, by assignment or by a method of a container."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from tests.field_types import Function

MAKERS = {"cls", "copy", "__new__"}
"""Besides classes, what makes an object that nobody else has yet."""


CHANGING = {
    *("append", "appendleft", "extend", "insert", "add", "update", "setdefault", "set"),
    *("remove", "discard", "pop", "popleft", "popitem", "clear"),
}
"""Methods that change a container, or set an event."""


def fields_of(tree: ast.Module) -> Iterator[str]:
    """Yield the fields that the classes of a file have."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    yield inner.target.id
        for target in _targets(node):
            if isinstance(target, ast.Attribute) and _name(target.value) == "self":
                yield target.attr


def changes(function: Function) -> Iterator[tuple[ast.Attribute, bool]]:
    """Yield the fields that a function changes, and whether by a call.

    Left out are its own, and those of what it has made and not handed out yet.
    """
    made = dict.fromkeys(filter(None, _made_in(function)), math.inf)
    made |= {name: line for name, line in _handed_out(function) if name in made}
    for node in ast.walk(function):
        changed = _changed(node)
        for target in (*_targets(node), *([] if changed is None else [changed])):
            field = target
            while isinstance(field, ast.Subscript):  # an item of a field's value
                field = field.value
            if isinstance(field, ast.Attribute):
                name = _name(field.value)
                if name != "self" and field.lineno > made.get(name, 0):
                    yield field, target is changed


def _changed(node: ast.AST) -> ast.expr | None:
    """Return what a call changes."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in CHANGING:
            return value
    return None


def _handed_out(function: Function) -> Iterator[tuple[str, int]]:
    """Yield each name with the lines that use it whole; the first line comes last."""
    nodes = list(ast.walk(function))
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    inner |= {id(node.left) for node in nodes if isinstance(node, ast.Compare)}
    used = [
        (node.id, node.lineno)
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inner
    ]
    yield from sorted(used, key=lambda use: -use[1])


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

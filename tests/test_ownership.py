"""An object's fields are written by its own methods: others call a verb."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from bargein import bridge, nodes

OWNED = {
    "body", "bridge", "call", "context", "copy", "interrupts", "meter", "receipt", "turn",
    "utterance",
}  # fmt: skip
"""What a variable is called that holds an object of this class; ``self._turn`` counts, too."""

PURE = "user_turns"
"""The pure core of turn taking: one state, written by the functions of that room alone."""


def written() -> Iterator[str]:
    """Yield each assignment to a field of an object that is not the writer's own."""
    for package in (bridge, nodes):
        root = Path(package.__file__ or "").parent
        for path in sorted(root.rglob("*.py")):
            if PURE in path.parts or "examples" in path.parts:
                continue
            tree = ast.parse(path.read_text("utf-8"))
            owned = OWNED - {name.lower()[1:] for name in _private_classes(tree)}
            for node in ast.walk(tree):
                for target in _targets(node):
                    if isinstance(target, ast.Attribute) and _name(target.value) in owned:
                        yield f"{path.relative_to(root)}:{node.lineno} {ast.unparse(target)}"


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            for target in targets:
                yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            yield target


def _private_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the classes that a file keeps to itself: what is written stays in sight."""
    classes = (node.name for node in tree.body if isinstance(node, ast.ClassDef))
    return (name for name in classes if name.startswith("_"))


def _name(owner: ast.expr) -> str:
    match owner:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lstrip("_")
    return ""


def test_nobody_writes_the_fields_of_another():
    """No code assigns to a field of a turn, an utterance, a receipt, a call, or of their like."""
    assert list(written()) == []

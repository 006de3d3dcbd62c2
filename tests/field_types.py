"""What the fields of our classes hold, as far as annotations and constructors say it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Kind:
    """A class of ours."""

    name: str
    path: Path
    bases: tuple[str, ...]
    fields: dict[str, str] = field(default_factory=dict)
    """The class of each field, by its last name; empty if nothing says it."""


class Kinds:
    """The classes of some files; of two with one name, an expression's own file decides."""

    def __init__(self, trees: Mapping[Path, ast.Module]) -> None:
        self._kinds: dict[str, list[Kind]] = {}
        self._functions: dict[str, str] = {}
        self._held: dict[str, set[str]] = {}
        for path, tree in trees.items():
            for function, cls in methods(tree):
                if not cls:
                    self._functions[function.name] = last_name(function.returns)
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    bases = tuple(last_name(base) for base in node.bases)
                    kind = Kind(node.name, path, bases, dict(_fields(node)))
                    self._kinds.setdefault(node.name, []).append(kind)
                    for name, held in kind.fields.items():
                        self._held.setdefault(name, set()).add(held)

    def named(self, name: str, path: Path) -> Kind | None:
        """Return the class of a name as a file sees it; ``None`` for others' and unclear ones."""
        found = self._kinds.get(name, [])
        own = [kind for kind in found if kind.path == path]
        return own[0] if own else found[0] if len(found) == 1 else None

    def owner(self, kind: Kind, attribute: str) -> Kind | None:
        """Return the class that has a field: this one or one of its bases."""
        if attribute in kind.fields:
            return kind
        for base in kind.bases:
            above = self.named(base, kind.path)
            found = None if above is None or above is kind else self.owner(above, attribute)
            if found is not None:
                return found
        return None

    def holds_ours(self, owner: Kind | None, attribute: str) -> bool:
        """Whether a field holds an object of ours; without an owner, whether all of its name do."""
        held = {owner.fields[attribute]} if owner else self._held.get(attribute, set())
        return bool(held) and held <= self._kinds.keys()

    def name_of(self, value: ast.expr, names: Mapping[str, str], path: Path) -> str:
        """Return the name of the class of a value, by those of a function's names; or nothing."""
        match value:
            case ast.Name(id=name):
                return names.get(name, "")
            case ast.Call(func=ast.Name(id=name)) if name in self._functions:
                return self._functions[name]
            case ast.Call(func=ast.Attribute(value=whose, attr=attr)):
                return self._of_field(whose, f"{attr}()", names, path) or of_value(value)
            case ast.Attribute(value=whose, attr=attr):
                return self._of_field(whose, attr, names, path)
        return of_value(value)

    def _of_field(
        self, whose: ast.expr, attribute: str, names: Mapping[str, str], path: Path
    ) -> str:
        kind = self.named(self.name_of(whose, names, path), path)
        owner = None if kind is None else self.owner(kind, attribute)
        return "" if owner is None else owner.fields[attribute]

    def names_in(self, function: Function, cls: str, path: Path) -> dict[str, str]:
        """Return the classes of a function's names."""
        names = _annotated_in(function) | ({"self": cls} if cls else {})
        for node in ast.walk(function):
            for name, value in _assigned(node):
                if name not in names:
                    names[name] = self.name_of(value, names, path)
        return names


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=left)], value=ast.Tuple(elts=right)):
            for target, value in zip(left, right, strict=False):
                if isinstance(target, ast.Name):
                    yield target.id, value
        case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value


def _annotated_in(function: Function) -> dict[str, str]:
    names: dict[str, str] = {}
    for node in ast.walk(function):
        match node:
            case ast.arg(arg=name, annotation=annotation):
                names[name] = last_name(annotation)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                names[name] = last_name(annotation)
    return names


def methods(tree: ast.Module) -> Iterator[tuple[Function, str]]:
    """Yield the outermost functions of a file, each with the name of its class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.Module):
            for inner in node.body:
                if isinstance(inner, Function):
                    yield inner, node.name if isinstance(node, ast.ClassDef) else ""


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id, last_name(inner.annotation)
        elif isinstance(inner, Function):
            yield f"{inner.name}()", last_name(inner.returns)
            if any(last_name(each).endswith("property") for each in inner.decorator_list):
                yield inner.name, last_name(inner.returns)
            yield from _fields_set_in(inner)


def _fields_set_in(function: Function) -> Iterator[tuple[str, str]]:
    names = _annotated_in(function)
    for node in ast.walk(function):
        match node:
            case ast.AnnAssign(
                target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=annotation
            ):
                yield name, last_name(annotation)
            case ast.Assign(targets=targets, value=value) if function.name == "__init__":
                found = names.get(value.id, "") if isinstance(value, ast.Name) else of_value(value)
                for target in targets:
                    if isinstance(target, ast.Attribute) and last_name(target.value) == "self":
                        yield target.attr, found


def of_value(value: ast.expr) -> str:
    match value:
        case ast.List() | ast.ListComp():
            return "list"
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.Set() | ast.SetComp():
            return "set"
        case ast.Call(func=func):
            name = last_name(func)
            return (
                name
                if name.removeprefix("trio.").lstrip("_")[:1].isupper() or name in CONTAINERS
                else ""
            )
    return ""


CONTAINERS = {"list", "dict", "set", "deque", "bytearray", "defaultdict"}
"""Containers whose names begin with a small letter."""


def last_name(node: ast.expr | None) -> str:
    """Return the name of a class as it is written: ``X`` for ``X[Y] | Z | None``."""
    match node:
        case ast.Attribute(value=ast.Name(id="trio"), attr=name):
            return f"trio.{name}"
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str() as text):
            return last_name(ast.parse(text, mode="eval").body)
        case ast.Subscript(value=value):
            return last_name(value)
        case ast.BinOp(left=left, right=right):
            return last_name(left) or last_name(right)
        case ast.Call(func=func):
            return last_name(func)
    return ""

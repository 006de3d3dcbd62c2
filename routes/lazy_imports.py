"""Loads some of a package's names when they are asked for, and says what replaces those gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_imports"]


def lazy_imports(
    package: str, modules: Mapping[str, str], gone: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Return a ``__getattr__`` for a package.

    Give it to the package only where it is not type-checked: to a type checker, a module with
    ``__getattr__`` has every name.

    Args:
        package: The package's name, which is ``__name__`` there.
        modules: Each name that it loads on first use, and the module that has it, such as
            ``".http_chat"``.
        gone: Each name that it had once, and what to write instead.
    """

    def load(name: str) -> object:
        if gone is not None and name in gone:
            raise ImportError(f"{package} has no {name} any more: {gone[name]}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(modules[name], package)
        except AttributeError as error:  # raised here, it would say that there is no such name
            raise ImportError(f"importing {modules[name]} of {package} failed: {error}") from error
        value = getattr(module, name)
        setattr(import_module(package), name, value)
        return value

    return load

"""Overlays: settings that apply only in a state, for an agent, or for a route."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, get_args

from bargein.bridge.events import CallState
from bargein.routes import Route, register

from ._settings import TurnSettings, check_changes
from ._sound_verdict import AgentView

STATES: tuple[str, ...] = get_args(CallState)


@dataclass(frozen=True, slots=True)
class Overlay:
    """Changes of settings under a condition; made by ``when()``."""

    states: tuple[str, ...]
    """In which states of the call; empty for all."""
    agents: tuple[str, ...]
    """While which agents have the floor, by the names of their bridges; empty for all."""
    routes: tuple[str, ...]
    """While a run of which chains speaks or works: patterns of how they are written; empty for
    all."""
    changes: Mapping[str, Any]
    """Names of settings and their values."""

    def applies(self, view: AgentView) -> bool:
        """Whether it applies at a moment.

        Args:
            view: The agent at that moment.
        """
        return (
            (not self.states or view.state in self.states)
            and (not self.agents or view.agent in self.agents)
            and (not self.routes or any(fnmatchcase(view.route, p) for p in self.routes))
        )


def when(
    *,
    state: str | Iterable[str] | None = None,
    agent: str | Iterable[str] | None = None,
    route: str | Route | None = None,
    **changes: Any,
) -> Overlay:
    """Change settings under a condition; if several apply, the last one counts.

    Args:
        state: The state of the call, or several; None for all.
        agent: The name of the agent that has the floor, or several; None for all.
        route: The chain whose run speaks or works, as last written, or a pattern of its text
            (``"*DTMFInput*"``); None for all.
        **changes: Names of settings and their values, as for ``TurnSettings``.

    Raises:
        TypeError: There is no such setting, or a value is of a wrong type.
        ValueError: A value is out of its bounds, there is no such state, or nothing is changed.
    """
    states = _names("state", state)
    for name in states:
        if name not in STATES:
            near = get_close_matches(name, STATES, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"when(state={name!r}): the states are {', '.join(STATES)}{hint}")
    if not changes:
        raise ValueError("when() changes nothing; name a setting, such as min_words=3")
    check_changes("when()", changes)
    return Overlay(states, _names("agent", agent), _patterns(route), dict(changes))


def _names(what: str, given: object) -> tuple[str, ...]:
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable):
        raise TypeError(f"when({what}=) is a name, or several, not {given!r}")
    names = tuple(names)
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(f"when({what}=) is a name, or several, not {name!r}")
    return names


def _patterns(route: object) -> tuple[str, ...]:
    if route is None:
        return ()
    if isinstance(route, Route):
        # The text of a chain is literal: "[", "*" and "?" are not patterns here.
        return ("".join(f"[{c}]" if c in "*?[" else c for c in str(route)),)
    if isinstance(route, str) and route:
        return (route,)
    raise TypeError(f"when(route=) is a chain, or a pattern of how it is written, not {route!r}")


@register
@dataclass(frozen=True, slots=True, init=False)
class ChangeTurns:
    """Changes settings of turn taking from now on; publish it in the call.

    It takes precedence over all earlier settings and overlays.
    """

    overlay: Overlay

    def __init__(
        self,
        *,
        state: str | Iterable[str] | None = None,
        agent: str | Iterable[str] | None = None,
        route: str | Route | None = None,
        **changes: Any,
    ) -> None:
        """Change settings, always or under a condition.

        Args:
            state: As in ``when()``.
            agent: As in ``when()``.
            route: As in ``when()``.
            **changes: As in ``when()``.

        Raises:
            TypeError: There is no such setting, or a value is of a wrong type.
            ValueError: A value is out of its bounds, or nothing is changed.
        """
        object.__setattr__(self, "overlay", when(state=state, agent=agent, route=route, **changes))


@dataclass(slots=True)
class SettingsInForce:
    """Finds the settings that apply at a moment."""

    base: TurnSettings
    overlays: tuple[Overlay, ...] = ()
    _last: tuple[tuple[bool, ...], TurnSettings] | None = field(default=None)

    def change(self, overlay: Overlay) -> None:
        """Give an overlay precedence over all earlier ones.

        Args:
            overlay: The overlay; it replaces the same settings of an earlier one with the same
                condition.
        """
        self._last = None
        kept = []
        for old in self.overlays:
            same = (old.states, old.agents, old.routes) == (
                overlay.states,
                overlay.agents,
                overlay.routes,
            )
            rest = {k: v for k, v in old.changes.items() if not same or k not in overlay.changes}
            if rest:
                kept.append(Overlay(old.states, old.agents, old.routes, rest))
        self.overlays = (*kept, overlay)

    def at(self, view: AgentView) -> TurnSettings:
        if not self.overlays:
            return self.base
        in_force = tuple(overlay.applies(view) for overlay in self.overlays)
        if self._last is None or self._last[0] != in_force:
            settings = self.base
            for overlay, applies in zip(self.overlays, in_force, strict=True):
                settings = settings.but(overlay.changes) if applies else settings
            self._last = (in_force, settings)
        return self._last[1]

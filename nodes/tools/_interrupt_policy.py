"""Policies: what an interrupt does to a tool."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from bargein.bridge.control import PolicyKind

from ._errors import ToolDefinitionError

PlainPolicy = Literal["cancel", "detach"]
"""The policies without a time limit."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What an interrupt does to a tool.

    ``cancel``: the tool is cancelled at once. ``finish``: it may finish within a grace period and
    is cancelled after that. ``shield``: it is not cancelled before a cap, counted from its start.
    ``detach``: it continues as a background job with one result.
    """

    kind: PolicyKind
    limit_s: float = 0.0
    """The grace period of ``finish``, counted from the interrupt, or the cap of ``shield``, counted
    from the start, in seconds; unused by the others."""


def finish(grace_s: float) -> Policy:
    """Let an interrupted tool finish within a grace period, and cancel it after that.

    Args:
        grace_s: Seconds from the interrupt, above 0 and finite.

    Raises:
        ToolDefinitionError: `grace_s` is not such a number.
    """
    return Policy("finish", _limit("finish(grace_s)", grace_s))


def shield(cap_s: float) -> Policy:
    """Protect a tool from being cancelled before a cap.

    Args:
        cap_s: Seconds from the tool's start, above 0 and finite.

    Raises:
        ToolDefinitionError: `cap_s` is not such a number.
    """
    return Policy("shield", _limit("shield(cap_s)", cap_s))


def as_policy(given: object) -> Policy:
    """Convert a policy's name to a policy.

    Args:
        given: A policy, or ``"cancel"`` or ``"detach"``.

    Raises:
        ToolDefinitionError: `given` is neither.
    """
    if isinstance(given, Policy):
        return given
    if given == "cancel":
        return Policy("cancel")
    if given == "detach":
        return Policy("detach", math.inf)
    if given in get_args(PolicyKind):
        raise ToolDefinitionError(f"policy={given!r} needs its seconds: policy={given}(2.0)")
    raise ToolDefinitionError(
        f"policy= is 'cancel', 'detach', finish(grace_s) or shield(cap_s), not {given!r}"
    )


def _limit(what: str, seconds: object) -> float:
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not 0 < seconds < math.inf:  # type: ignore[operator]  # is a number here
        raise ToolDefinitionError(
            f"{what} takes a finite number of seconds above 0, not {seconds!r}"
        )
    return float(seconds)  # type: ignore[arg-type]  # is a number here

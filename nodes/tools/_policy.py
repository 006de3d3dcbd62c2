"""What an interrupt means to a tool: its policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from bargein.bridge.control import PolicyKind

from ._errors import ToolDefinitionError

PlainPolicy = Literal["cancel", "detach"]
"""The policies that need no number."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What an interrupt does to a tool.

    ``cancel``: it is cancelled now.  ``finish``: it may finish within a grace period and is
    cancelled after that.  ``shield``: it is not cut before a cap, counted from its start.
    ``detach``: it continues as a background job with one result.
    """

    kind: PolicyKind
    limit_s: float = 0.0
    """The grace of ``finish``, counted from the interrupt; the cap of ``shield``, counted from the
    start; in seconds, without meaning for the others."""


def finish(grace_s: float) -> Policy:
    """Let an interrupted tool finish within a grace period, and cancel it after that.

    Args:
        grace_s: Seconds from the interrupt, above 0 and finite.

    Raises:
        ToolDefinitionError: No such number.
    """
    return Policy("finish", _limit("finish(grace_s)", grace_s))


def shield(cap_s: float) -> Policy:
    """Keep a tool from being cut before a cap.

    Args:
        cap_s: Seconds from the tool's start, above 0 and finite.

    Raises:
        ToolDefinitionError: No such number.
    """
    return Policy("shield", _limit("shield(cap_s)", cap_s))


def as_policy(given: object) -> Policy:
    """Return the policy that somebody means.

    Args:
        given: A policy, or ``"cancel"`` or ``"detach"``.

    Raises:
        ToolDefinitionError: It is neither.
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

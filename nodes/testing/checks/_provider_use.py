"""The base class that says how checks use a kind of provider, and what a right result is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Generic, TypeVar

from bargein.nodes.fakes import Fault, FaultStage

P = TypeVar("P")
R = TypeVar("R")

Make = Callable[[Fault | None], AbstractAsyncContextManager[P]]
"""Opens a provider whose vendor has a fault; ``None`` for no fault."""


class ProviderUse(ABC, Generic[P, R]):
    """How checks use a kind of provider, and what a right result is."""

    stages: Sequence[FaultStage] = ("connect", "first", "middle", "last")
    """The places in a use where a fault can strike, in order; "connect" is the first."""

    may_be_silent: ClassVar[Collection[FaultStage]] = ()
    """The places where a stalled vendor cannot be told from one that has nothing to say."""

    @abstractmethod
    async def use(self, provider: P) -> R:
        """Use the provider once, as users do.

        Returns:
            The result.

        Raises:
            BreachError: The result makes no sense, whatever the vendor sends.
        """

    @abstractmethod
    async def use_briefly(self, provider: P) -> None:
        """Use the provider once, with as little as possible."""

    @abstractmethod
    async def use_nothing(self, provider: P) -> None:
        """Use the provider without words."""

    async def use_empty(self, provider: P) -> None:
        """Use the provider while the vendor's results are empty."""
        await self.use(provider)

    @abstractmethod
    async def leave_early(self, provider: P) -> None:
        """Start a use, and leave once something has come."""

    @abstractmethod
    async def read_nothing(self, provider: P, seconds: float) -> None:
        """Start a use, and read nothing for so many seconds."""

    @abstractmethod
    async def feed(self, provider: P, seconds: float) -> None:
        """Send the provider far more than it should accept in so many seconds."""

    @abstractmethod
    def difference(self, expected: R, came: R) -> str:
        """Return how a result differs from the expected one; empty if it does not."""

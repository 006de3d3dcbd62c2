"""How a kind of provider is used by its checks, and what is right about what comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Generic, TypeVar

from ..fakes import Fault, Stage

P = TypeVar("P")
R = TypeVar("R")

Make = Callable[[Fault | None], AbstractAsyncContextManager[P]]
"""Opens a provider whose vendor has this fault; None: none."""


class ProviderUse(ABC, Generic[P, R]):
    """How a kind of provider is used, and what is right about what comes."""

    stages: Sequence[Stage] = ("connect", "first", "middle", "last")
    """Where in a use something can go wrong, in order; "connect" is the first."""

    may_be_silent: ClassVar[Collection[Stage]] = ()
    """Where nobody can tell a vendor that stalls from one that has nothing to say."""

    @abstractmethod
    async def use(self, provider: P) -> R:
        """Use it once, as users do.

        Returns:
            What came.

        Raises:
            Breach: It makes no sense, whatever the vendor sends.
        """

    @abstractmethod
    async def use_briefly(self, provider: P) -> None:
        """Use it once, with as little as possible."""

    @abstractmethod
    async def use_nothing(self, provider: P) -> None:
        """Use it without words."""

    async def use_empty(self, provider: P) -> None:
        """Use it where the vendor's result is empty."""
        await self.use(provider)

    @abstractmethod
    async def leave_early(self, provider: P) -> None:
        """Begin to use it, and leave once something has come."""

    @abstractmethod
    async def read_nothing(self, provider: P, seconds: float) -> None:
        """Begin to use it, and take nothing that comes for so long."""

    @abstractmethod
    async def feed(self, provider: P, seconds: float) -> None:
        """Give it far more than it should take in so long."""

    @abstractmethod
    def difference(self, expected: R, came: R) -> str:
        """Return what of a result is not as it should be; empty if it is."""

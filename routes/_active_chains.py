"""The chains of a router: those at work, and removed ones whose last runs are not over."""

from __future__ import annotations

from ._chain_runtime import RouteRuntime
from ._route import Route


class ChainKeeper:
    """Keeps the chains of one router, in the order in which they were started."""

    __slots__ = ("_at_work", "_paused", "_retired")

    def __init__(self) -> None:
        self._at_work: dict[Route, RouteRuntime] = {}
        self._retired: dict[RouteRuntime, None] = {}
        self._paused: set[str] = set()

    @property
    def at_work(self) -> tuple[RouteRuntime, ...]:
        """The chains that start runs."""
        return tuple(self._at_work.values())

    @property
    def all(self) -> tuple[RouteRuntime, ...]:
        """The chains at work, and removed chains that still have runs."""
        return (*self._at_work.values(), *self._retired)

    def of(self, source: str) -> list[RouteRuntime]:
        """Return the chains of a bridge, including removed ones that still have runs."""
        return [chain for chain in self.all if chain.source == source]

    def runtime(self, route: Route) -> RouteRuntime:
        """Return a chain at work.

        Raises:
            KeyError: The chain was extended since, and is no longer at work.
        """
        return self._at_work[route]

    def install(self, chain: RouteRuntime, instead_of: Route | None) -> None:
        """Add a chain, in place of the one that it extends; paused if its bridge is."""
        if chain.source in self._paused:
            chain.pause_all()
        if instead_of not in self._at_work:
            self._at_work[chain.route] = chain
            return
        replaced = self._at_work[instead_of]
        self._at_work = {
            (chain.route if old is instead_of else old): (chain if old is instead_of else kept)
            for old, kept in self._at_work.items()
        }
        self._retire(replaced)

    def pause(self, source: str) -> None:
        """Pause the chains of a bridge, and those that it will declare before ``resume()``."""
        self._paused.add(source)
        for chain in self.of(source):
            chain.pause_all()

    def resume(self, source: str) -> None:
        """Resume the chains of a bridge."""
        self._paused.discard(source)
        for chain in self.of(source):
            chain.resume_all()

    def remove(self, source: str) -> None:
        """Remove the chains of a bridge: they start no more runs."""
        for route in [route for route in self._at_work if route.source == source]:
            self._retire(self._at_work.pop(route))

    def _retire(self, chain: RouteRuntime) -> None:
        chain.forget()
        if chain.runs:
            self._retired[chain] = None  # its rules apply until its last run has ended

    def forget(self, chain: object) -> bool:
        """Forget a removed chain that has no more runs, and return whether it was one."""
        if not isinstance(chain, RouteRuntime) or chain not in self._retired:
            return False
        del self._retired[chain]
        return True

"""The runs of one chain, and whether there is a place for one more."""

from __future__ import annotations

from ._run import Run


class ChainRuns:
    """Keeps the runs of a chain apart by what can still become of them.

    Attributes:
        active: Those that take a place: at work, or cut and not unwound yet.
        delivered: Those that have ended and can still be cut, as something of them is outstanding.
        aside: Those in the background, which no rule reaches.
        on_hold: Those that ``hold_all()`` holds, each with whether it was paused before; ``None``
            while nothing is held.
        suspended: Whether a rule keeps the chain from beginning any.
    """

    __slots__ = ("_places", "active", "aside", "delivered", "on_hold", "suspended")

    def __init__(self, places: float) -> None:
        """Begin without any.

        Args:
            places: How many may be active at once; infinity means that there is no limit.
        """
        self._places = places
        self.active: dict[Run, None] = {}
        self.delivered: dict[Run, None] = {}
        self.aside: dict[Run, None] = {}
        self.on_hold: list[tuple[Run, bool]] | None = None
        self.suspended = False

    @property
    def all(self) -> tuple[Run, ...]:
        """Those that are at work, or of which something is outstanding."""
        return (*self.active, *self.delivered, *self.aside)

    @property
    def has_place(self) -> bool:
        """Whether one more may begin."""
        return len(self.active) < self._places and not self.suspended and self.on_hold is None

    def live(self) -> list[Run]:
        """Return those that can still be cut, the background's left out."""
        live = []  # no comprehensions: one is a call in Python 3.11, and this is asked at a cut
        for run in (*self.active, *self.delivered) if self.delivered else self.active:
            if not run.is_cut:
                live.append(run)
        return live

    def vacate(self, run: Run) -> bool:
        """Take a run from the place that it has had.

        Returns:
            Whether a place became free by it.
        """
        if run in self.aside:
            del self.aside[run]
            return False
        if run not in self.active:
            return False
        del self.active[run]
        if run._holds and not run.is_cut:
            self.delivered[run] = None
        return True

    def keep_delivered(self, run: Run) -> None:
        """Keep a run that has ended interruptible, unless it still has its place, or was cut."""
        if run.outcome is not None and run not in self.active and not run.is_cut:
            self.delivered[run] = None

    def forget_delivered(self, run: Run) -> None:
        """Forget a run of which nothing is outstanding; one that is not here is left alone."""
        self.delivered.pop(run, None)

    def move_aside(self, run: Run) -> bool:
        """Move an active run to the background, and return whether it was one."""
        if run not in self.active:
            return False
        del self.active[run]
        self.aside[run] = None
        return True

    def suspend(self) -> None:
        """Begin no more runs until ``awake()``."""
        self.suspended = True

    def awake(self) -> bool:
        """Take back ``suspend()``, and return whether it was in force."""
        was_suspended, self.suspended = self.suspended, False
        return was_suspended

    def hold_all(self) -> None:
        """Pause every run in place, past all rules, until ``go_on()``."""
        if self.on_hold is None:
            self.on_hold = [(run, run.is_paused) for run in self.live()]
            for run, _ in self.on_hold:
                run.pause()

    def go_on(self) -> None:
        """Resume the runs that ``hold_all()`` has paused; one that was paused before stays so."""
        held, self.on_hold = self.on_hold or [], None
        for run, was_paused in held:
            if not was_paused:
                run.resume()

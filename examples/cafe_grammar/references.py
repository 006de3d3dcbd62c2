"""Finds the lines of an order that a guest refers to."""

from collections.abc import Callable
from dataclasses import dataclass, field

from .ellipsis import absolute
from .menu import DRINKS, KINDS, Line, Order, kind_of, listed
from .phrases import Thing


@dataclass
class Reading:
    """The result of a sentence.

    Attributes:
        changed: Whether the order was changed, or confirmed as it is.
        finished: Whether the guest wants nothing else.
        notes: What else to tell the guest.
        question: What to ask the guest; empty if everything was clear.
    """

    changed: bool = False
    finished: bool = False
    notes: list[str] = field(default_factory=list)
    question: str = ""


class References:
    """Finds the lines of an order that a guest means, and asks if there are several."""

    def __init__(self, order: Order | None = None) -> None:
        self.order = order or Order()
        self.focus: list[Line] = []  # the lines last mentioned
        self.touched: list[Line] = []  # the lines changed by this sentence
        self.latest: list[Line] = []  # the lines of the last change
        self.asked: list[str] = []  # the items that the guest last asked about
        self.pending: Callable[[Thing], bool] | None = None  # handles the answer to a question
        self.closing = False  # the guest was asked whether that is all
        self.reading = Reading()

    def has(self, thing: Thing) -> bool:
        names = [thing.item] if thing.item else KINDS[thing.kind]
        return any(line.item in names for line in self.order.lines)

    def ordered(self, thing: Thing) -> int:
        """Return how many of a thing are ordered, of all sizes."""
        return sum(line.count for line in self.order.lines if line.item == thing.item)

    def same(self, thing: Thing) -> list[Line]:
        """Return the lines that match a thing."""
        size = thing.size or thing.new_size
        return [
            line for line in self.order.lines
            if line.item == thing.item and size in ("", line.size)
            and thing.count in (None, line.count)
        ]  # fmt: skip

    def drinks(self) -> list[Line]:
        return [line for line in self.order.lines if line.item in DRINKS]

    def named(self, thing: Thing) -> list[Line]:
        """Return the lines of the order that a thing may mean."""
        lines = self.order.lines
        match thing.ref:
            case "all":
                return lines
            case "first" | "second" | "last":
                return lines[
                    {"first": slice(1), "second": slice(1, 2), "last": slice(-1, None)}[thing.ref]
                ]
            case "other":
                others = [line for line in lines if line not in self.focus]
                named = [line.item for line in self.focus]
                return [line for line in others if line.item in named] or others
            case "it" | "that" | "them" | "those":
                return self.focus or lines
        if thing.item or thing.kind:
            names = [thing.item] if thing.item else KINDS[thing.kind]
            lines = [line for line in lines if line.item in names]
        if thing.size:
            lines = [line for line in lines if line.size == absolute(thing.size, line.size)]
        if not (thing.item or thing.kind or thing.size):
            lines = [line for line in lines if line.count == thing.count] or self.focus or lines
        return lines

    def fitting(self, lines: list[Line], new: Thing) -> list[Line]:
        """Return the lines that a new thing may change: a cake has no size."""
        if new.item and not any(line.item == new.item for line in lines):
            return [line for line in lines if kind_of(line.item) == kind_of(new.item)]
        if new.item:
            return [line for line in lines if line.item == new.item]
        sized = new.size or new.new_size
        return [line for line in lines if not sized or line.item in DRINKS]

    def which(self, thing: Thing, use: Callable[[Line], object], new: Thing | None = None) -> None:
        """Call a function with the line that a thing means, or ask which one it is."""
        lines = self.named(thing)
        fitting = (self.fitting(lines, new) or lines) if new else lines
        if new and thing.ref and not self.fitting(lines, new):
            fitting = self.fitting(self.order.lines, new)
        if thing.item and new and new.size and not new.new_size:
            fitting = [line for line in fitting if line.size == new.size] or fitting
        self.choose(unique(fitting), use)

    def each_named(self, thing: Thing, use: Callable[[Line], object]) -> None:
        """Call a function with all lines of a plural thing, or with the one that is meant."""
        if thing.plural or thing.ref in ("them", "those", "all"):
            for line in list(self.named(thing)):
                use(line)
        else:
            self.which(thing, use)

    def choose(self, lines: list[Line], use: Callable[[Line], object]) -> None:
        """Call a function with the only line, or ask which one is meant."""
        if len(lines) == 1:
            use(lines[0])
        elif lines:

            def answer(thing: Thing) -> bool:
                meant = [line for line in self.named(thing) if any(line is one for one in lines)]
                if thing.ref in ("them", "those", "all"):
                    meant = lines
                elif len(meant) != 1:
                    return False
                for line in meant:
                    use(line)
                return True

            self.pending = answer
            self.ask(f"Which one, {listed([f'the {line.name}' for line in lines], 'or')}?")
        else:
            self.ask("Sorry, what would you like?")

    def done(self, *lines: Line) -> None:
        """Record that lines of the order were changed or confirmed."""
        self.order.tidy()
        self.touched = [
            line for line in unique([*self.touched, *lines]) if line in self.order.lines
        ]
        self.focus, self.latest = list(self.touched), list(lines)
        self.reading.changed = True

    def ask(self, question: str) -> None:
        self.reading.question = self.reading.question or question


def unique(lines: list[Line]) -> list[Line]:
    """Return the lines without duplicates."""
    return list({id(line): line for line in lines}.values())

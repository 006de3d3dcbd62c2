"""The menu, and an order of things on it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

DRINKS = {"latte": 450, "cappuccino": 425, "espresso": 300, "mocha": 475, "tea": 275}
FOOD = {"blueberry muffin": 325, "croissant": 350, "cookie": 200}
PRICES = DRINKS | FOOD  # in cents
KINDS = {"drink": [*DRINKS], "coffee": [*DRINKS][:-1], "food": [*FOOD], "all": [*PRICES], "": []}
SIZES = ("small", "medium", "large")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
           "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
           "eighteen", "nineteen", "twenty")  # fmt: skip
MOST = 20  # of one kind


def kind_of(item: str) -> str:
    """Return whether a thing on the menu is a drink or food."""
    return "drink" if item in DRINKS else "food"


def listed(names: Iterable[str], last: str = "and") -> str:
    """Return names as they are read aloud: "a, b and c"."""
    *head, tail = [*names] or [""]
    return f"{', '.join(head)} {last} {tail}" if head else tail


def dollars(cents: int) -> str:
    """Return a price as it is read aloud."""
    whole, rest = divmod(cents, 100)
    return f"{whole} dollars and {rest} cents" if rest else f"{whole} dollars"


@dataclass
class Line:
    """A number of one thing in one size; an empty size was not given."""

    item: str
    count: int = 1
    size: str = ""

    @property
    def name(self) -> str:
        return f"{self.size} {self.item}".strip()

    def __str__(self) -> str:
        return f"{NUMBERS[self.count]} {self.name}{'s' if self.count > 1 else ''}"


@dataclass
class Order:
    """What somebody orders, in the order in which they said it."""

    lines: list[Line] = field(default_factory=list)

    def __str__(self) -> str:
        return listed(map(str, self.lines))

    def __bool__(self) -> bool:
        return bool(self.lines)

    @property
    def price(self) -> str:
        return dollars(sum(PRICES[line.item] * line.count for line in self.lines))

    def copy(self) -> "Order":
        return Order([Line(line.item, line.count, line.size) for line in self.lines])

    def add(self, item: str, count: int, size: str) -> Line:
        """Add to the line of the same thing and size, or a new line."""
        for line in self.lines:
            if (line.item, line.size) == (item, size):
                line.count += count
                return line
        self.lines.append(Line(item, count, size))
        return self.lines[-1]

    def tidy(self) -> None:
        """Merge lines that have become the same, and drop empty ones."""
        kept: dict[tuple[str, str], Line] = {}
        for line in self.lines:
            if line.count > 0 and kept.setdefault((line.item, line.size), line) is not line:
                kept[line.item, line.size].count += line.count
        self.lines = list(kept.values())

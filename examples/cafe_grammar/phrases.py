"""Combines words into things: "two large lattes", "the big one", "one of them"."""

from dataclasses import dataclass
from dataclasses import field as field_of

from .words import Word

# A phrase takes words in this order; a word that comes too late starts the next phrase.
PLACES = {
    "a": 0, "the": 0, "some": 0, "count": 1, "more": 1, "size": 2, "word": 3, "extra": 3,
    "item": 4, "items": 4, "kind": 4, "kinds": 4, "ones": 4, "each": 6,
}  # fmt: skip
WHOLE = ("ref", "same", "more one")  # phrases by themselves
OPENS_UNKNOWN = (
    "want",
    "add",
    "and",
    "no",
    "not",
    "remove",
    "no more",
    "to",
    "instead of",
    "offer",
)


@dataclass
class Thing:
    """What was said about one thing; anything else is empty or None.

    Attributes:
        item: Its name on the menu.
        kind: Coffee, drink or food, instead of a name.
        size: Its size, or a size that identifies it ("the big one").
        new_size: A size after it ("make the latte large").
        count: How many; "a" and "an" are articles, not counts.
        ref: A pronoun for what was ordered before.
        unknown: Words that mean nothing here.
        after: The kind of the word before it, "," for a comma, empty for another thing.
    """

    item: str = ""
    kind: str = ""
    size: str = ""
    new_size: str = ""
    count: int | None = None
    ref: str = ""
    unknown: list[str] = field_of(default_factory=list)
    after: str = ""
    article: bool = False
    definite: bool = False
    part: bool = False
    some: bool = False
    plural: bool = False
    one: bool = False
    more: bool = False
    less: bool = False
    same: bool = False
    each: bool = False
    just: bool = False
    unclear: bool = False
    place: int = -1

    @property
    def is_bare(self) -> bool:
        """Whether it is only a name, without an article, a number or a size."""
        return not (self.article or self.definite or self.size or self.count is not None)

    @property
    def is_some_of_it(self) -> bool:
        """Whether it means part of a line: "one of them", "a tea", but not "the tea"."""
        return self.part or bool(self.item and (self.count is not None or self.article))

    def awaits(self, rest: "Thing") -> bool:
        """Return whether this is the beginning of a phrase that another thing completes."""
        begun = self.article and not (self.item or self.kind or self.unknown or self.one)
        is_rest = not (rest.article or rest.definite or rest.ref or rest.more)
        return begun and is_rest and rest.count is None and not (self.size and rest.size)

    @property
    def says_something(self) -> bool:
        named = self.item or self.kind or self.size or self.ref or self.unknown
        return bool(named or self.count is not None or self.more or self.same or self.each)

    @property
    def name(self) -> str:
        """Its words, for what is not on the menu."""
        return " ".join([*self.unknown[:3], (self.item or self.kind).split(" ")[-1]]).strip()

    def fits(self, word: Word, following: str) -> bool:
        """Return whether a word continues this phrase."""
        if self.ref or self.same:
            return self.ref in ("that", "those") and word.kind in ("item", "items", "the")
        if word.kind == "one of":
            return self.place <= 1 and self.count is not None
        if word == ("count", "1") and self.size and not self.item and not self.one:
            return self.definite or following not in ("size", "item", "items")  # "a large one"
        if word.kind == "count" and self.place == 1:
            return True  # "another two", and "two three", which is unclear
        if word.kind == "more" and self.place == 1:
            return not self.more
        if word.kind in ("word", "extra") and self.place == 3:
            return True
        if word.kind == "size" and self.place >= 4:  # after the name: "a latte, large"
            return not self.new_size and following not in ("item", "items")
        return PLACES.get(word.kind, -1) > self.place

    def take(self, word: Word) -> None:
        """Add a word that fits."""
        kind, value = word
        if word == ("count", "1") and self.size:
            kind = "ones"
        if kind == "one of":
            self.part = self.definite = True
            self.place = 1
            return
        if self.ref:  # "that latte", "all the muffins"
            self.ref, self.definite = "", True
        self.place = 5 if kind == "size" and self.place >= 4 else PLACES.get(kind, 9)
        match kind:
            case "a":
                self.article = True
            case "the":
                self.definite = True
            case "some":
                self.some = True
            case "count":
                self.unclear |= self.count not in (None, int(value)) and not self.more
                self.count = int(value)
            case "size" if self.place == 5:
                self.new_size = value
            case "size":
                self.size = value
            case "item" | "items":
                self.item, self.plural = value, kind == "items"
            case "kind" | "kinds":
                self.kind, self.plural = value, kind == "kinds"
            case "ones":
                self.one = True
            case "word" | "extra":
                self.unknown.append(value)
            case "ref":
                self.ref = value
            case "same":
                self.same = True
            case _:
                self.more |= kind.startswith("more")
                self.less |= value == "less"
                if kind == "each":
                    self.each, self.kind = True, self.kind or value
                if kind == "more one":
                    self.count, self.one = 1, True


Piece = Word | Thing


def pieces(words: list[Word]) -> list[Piece]:
    """Combine the words of each thing; all other words stay as they are."""
    found: list[Piece] = []
    thing: Thing | None = None
    before = ""
    for n, word in enumerate(words):
        following = words[n + 1].kind if n + 1 < len(words) else ""
        if thing and thing.fits(word, following):
            thing.take(word)
        elif begins_thing(words, n, before):
            thing = Thing(after="" if thing else before)
            thing.take(word)
            found.append(thing)
        else:
            thing = None
            found.append(word)
        before = word.kind
    return [piece for piece in joined(found) if isinstance(piece, Word) or piece.says_something]


def begins_thing(words: list[Word], n: int, before: str) -> bool:
    """Return whether a word starts the name of a thing; an unknown word does if a thing is due."""
    if words[n].kind != "word":
        return words[n].kind in PLACES or words[n].kind in WHOLE
    rest = [word.kind for word in words[n:]]
    known = next((kind for kind in rest if kind != "word"), "")
    return before in OPENS_UNKNOWN or known in ("item", "items", "kind", "kinds")


def joined(found: list[Piece]) -> list[Piece]:
    """Join what a hesitation has split: "a, um, large, uh, latte"."""
    result: list[Piece] = []
    for piece in found:
        match result, piece:
            case [*_, Thing() as start, Word(",")], Thing() if start.awaits(piece):
                result.pop()
                start.size = start.size or piece.size
                start.item, start.plural = piece.item, piece.plural
            case _:
                result.append(piece)
    return result

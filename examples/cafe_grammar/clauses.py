"""Groups things into clauses: what is wanted, what is not, and in which mode."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .menu import DRINKS
from .phrases import Piece, Thing

ONE_OF_SEVERAL = ("first", "second", "last", "other")


@dataclass
class Clause:
    """What one part of a sentence says.

    Attributes:
        mode: Empty to order; "add" to order in addition; "wait" if it may correct; "correct",
            "remove", "change", "keep", "except", "ask", "undo" and "clear" mean what they say.
        said: The things that are wanted or asked about.
        denied: The things that are not wanted, or that should change.
    """

    mode: str = ""
    said: list[Thing] = field(default_factory=list)
    denied: list[Thing] = field(default_factory=list)


class Reader:
    """Divides a sentence into clauses."""

    def __init__(self, has: Callable[[Thing], bool]) -> None:
        self.has = has  # whether a thing is in the order
        self.clauses = [Clause()]
        self.signs: set[str] = set()
        self.wanted = True  # not after "not" or "leave out"
        self.just = False
        self.before = ""

    @property
    def clause(self) -> Clause:
        return self.clauses[-1]

    def begin(self, mode: str, *, wanted: bool = True) -> None:
        """Start a clause, replacing an empty one."""
        if self.clause.said or self.clause.denied or self.clause.mode in ("undo", "clear"):
            self.clauses.append(Clause())
        self.clause.mode, self.wanted = mode, wanted

    def read(self, pieces: list[Piece]) -> None:
        """Read a sentence."""
        for n, piece in enumerate(pieces):
            rest = pieces[n + 1 :]
            if isinstance(piece, Thing):
                self.thing(piece)
                self.before, self.just = "thing", False
            else:
                self.signs.add(piece.kind)
                self.sign(piece.kind, rest)
                self.before = piece.kind

    def sign(self, kind: str, rest: list[Piece]) -> None:
        """Apply a word or phrase; `rest` is what follows it."""
        clause, following = self.clause, rest[0] if rest else None
        thing = following if isinstance(following, Thing) else None
        match kind:
            case "want" if self.before not in ("not", "no more") and clause.mode != "change":
                if clause.mode in ("ask", "keep", "except"):
                    self.begin("")
                self.wanted = True
            case "but" | "done" | "thanks" | "yes" | "fine":
                self.wanted = True
            case "add" | "keep":
                self.begin(kind)
            case "ask" | "offer":
                self.begin("ask")
            case "is":
                self.begin("ask")
                self.signs.add("repeat")  # "is the latte large?"
            case "also":
                clause.mode = "add" if clause.mode in ("", "wait", "correct") else clause.mode
            case "just":
                self.just = True
            case "enough" if clause.said:
                clause.said[-1].just = True
            case "no":
                self.no(thing, rest)
            case "not":
                self.not_(following)
            case "remove" | "no more":
                self.begin("keep" if self.before == "not" else "remove", wanted=False)
            case "out" if clause.mode != "keep":
                clause.denied, clause.said = clause.denied + clause.said, []
            case "instead":
                clause.mode = "correct" if clause.mode in ("", "wait") else clause.mode
            case "mean" | "wrong":
                self.begin("correct")
            case "should be":
                clause.mode = "change" if clause.said else "correct"
                for one in clause.said:
                    one.part |= one.count is not None  # "one should be large"
                clause.denied, clause.said, self.wanted = clause.denied + clause.said, [], True
            case "wait":
                self.begin("correct" if clause.mode == "correct" and not clause.said else "wait")
            case "instead of":
                self.wanted = False
            case "make" | "change":
                self.change(kind, thing)
            case "to" | "for" if clause.mode == "change":
                self.to()
            case "undo":
                self.undo(thing)
            case "clear":
                self.begin("clear")
                self.begin("")
            case "except":
                self.begin("except" if clause.mode == "remove" else "unclear")
            case "?" if clause.mode == "ask":
                self.begin("")

    def no(self, thing: Thing | None, rest: list[Piece]) -> None:
        """Refuse a thing ("no muffin"), or what was said before ("no, a muffin")."""
        if (
            thing
            and thing.is_bare
            and (thing.unknown or self.has(thing) or has_another(thing, rest))
        ):
            self.wanted = False
        else:
            self.begin("correct")

    def not_(self, following: Piece | None) -> None:
        """Refuse a thing; refusing what was just said corrects it."""
        said, items = self.clause.said, [thing.item for thing in self.clause.said]
        if isinstance(following, Thing) and following.item in items and following.item:
            sizes = {thing.size for thing in said} - {""}
            if self.clause.mode != "correct" and following.size not in sizes:
                self.begin("correct")  # "a latte, not a latte, a mocha"
        self.wanted = False

    def change(self, kind: str, thing: Thing | None) -> None:
        """Start a change; "make" may also order something."""
        named = thing and (thing.definite or thing.ref or thing.part)
        one = thing and (thing.count, thing.item, thing.one) == (1, "", False)
        if thing and one:
            thing.part = True
        if kind == "change" or named or one:
            self.begin("change", wanted=False)

    def to(self) -> None:
        """Switch from what is changed to what it becomes."""
        said = self.clause.said
        if len(said) > 1 and said[-1].definite:  # "... and the tea to a mocha"
            source = said.pop()
            self.begin("change")
            self.clause.denied = [source]
        self.clause.denied = self.clause.denied or [Thing(ref="it")]
        self.wanted = True

    def undo(self, thing: Thing | None) -> None:
        """Take back what was said last, or the thing that follows."""
        if thing and thing.definite:
            self.begin("remove", wanted=False)
        else:
            self.begin("undo")
            self.begin("correct")

    def thing(self, thing: Thing) -> None:
        """Add a thing to the clause that it belongs to."""
        clause = self.clause
        thing.just = self.just
        if clause.mode == "change" and clause.said and thing.ref in ONE_OF_SEVERAL:
            self.begin("change", wanted=False)  # "make one large and the other one small"
            self.clause.denied, self.wanted = [thing], True
            return
        last = clause.said[-1].item if clause.said else ""
        if thing.after == "" and thing.is_bare and {thing.item, last} <= {*DRINKS}:
            thing.after = "or"  # "a mocha latte" may be either
        if not self.wanted and clause.denied:
            self.wanted = not self.goes_on(thing)
        if self.wanted:
            clause.said.append(thing)
            return
        if clause.mode == "change":
            if (
                not clause.said
                and thing.after != "from"
                and thing.size
                and not (thing.item or thing.kind or thing.one or thing.new_size)
            ):
                thing.size, thing.new_size = "", thing.size  # "make one of them large"
            if thing.new_size:
                clause.said.append(Thing(size=thing.new_size))
                thing = replace(thing, new_size="")
        clause.denied.append(thing)

    def goes_on(self, thing: Thing) -> bool:
        """Return whether a thing continues the list of refused or changed things."""
        if thing.after in ("or", "no", "not", "remove", "no more", "instead of", "from"):
            return True
        if thing.after == "and":
            return thing.definite or (self.clause.mode == "remove" and self.has(thing))
        return thing.definite and self.clause.mode == "remove"


def has_another(thing: Thing, rest: list[Piece]) -> bool:
    """Return whether "but" replaces a first thing with another one."""
    kinds = ["" if isinstance(piece, Thing) else piece.kind for piece in rest]
    named = rest[kinds.index("but") :] if "but" in kinds else []
    return any(isinstance(one, Thing) and one.item not in ("", thing.item) for one in named)

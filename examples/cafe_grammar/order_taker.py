"""Takes an order: applies each clause, and asks if something is unclear."""

from dataclasses import replace
from functools import partial

from .changes import Changes
from .clauses import Clause, Reader
from .ellipsis import completed, is_fragment, merged
from .menu import DRINKS, FOOD, KINDS, PRICES, SIZES, Line, Order, dollars, listed
from .phrases import OPENS_UNKNOWN, Thing, pieces
from .references import Reading
from .words import read

MENU = (
    f"We have {listed(DRINKS)}, all of them {listed(SIZES, 'or')}, and {listed(FOOD)}. "
    "What would you like?"
)


class OrderTaker(Changes):
    """Follows what a guest says, sentence by sentence."""

    def __init__(self, order: Order | None = None) -> None:
        super().__init__(order)
        self.before = Order()  # the order before the last sentence
        self.correcting = False  # the last sentence was only "no wait"

    def hear(self, text: str) -> Reading:
        """Apply a guest's sentence to the order, and return the result."""
        self.reading, self.touched, asked = Reading(), [], self.asked
        reader = Reader(self.has)
        reader.read(pieces(read(text)))
        if self.correcting and reader.clauses[0].mode == "":
            reader.clauses[0].mode = "correct"
        pending, self.pending = self.pending, None
        closing, self.closing, self.correcting = self.closing, False, False
        things = [thing for clause in reader.clauses for thing in clause.said]
        if pending and len(things) == 1 and pending(things[0]):
            self.done()
        else:
            self.follow(reader)
        self.conclude(reader.signs, closing)
        if self.asked is asked:
            self.asked = []
        return self.reading

    # --- whole sentences ---------------------------------------------------------------------

    def follow(self, reader: Reader) -> None:
        """Apply the clauses one after the other."""
        start = self.order.copy()
        for n, clause in enumerate(reader.clauses):
            following = reader.clauses[n + 1].said if n + 1 < len(reader.clauses) else []
            if following and not self.order.lines and all(map(is_fragment, clause.said)):
                following[:1] = [
                    merged(thing, following[0]) for thing in clause.said[-1:]
                ] or following[:1]
                continue  # "two, no, three lattes"
            if clause.mode == "undo":
                said_before = clause is not reader.clauses[0]
                self.undo(start if said_before else self.before, reader.clauses[-1])
            else:
                self.do(clause, reader.signs)
        if self.order != start:
            self.before = start

    def conclude(self, signs: set[str], closing: bool) -> None:
        """Decide what to say if no clause has decided it."""
        reading = self.reading
        over = "done" in signs or (signs & {"no", "no more"} and "thanks" in signs)
        if reading.question:
            return
        if "not all" in signs:
            reading.question = "What else would you like?"
        elif over and not (reading.notes or signs & {"wrong", "ask", "offer"}):
            reading.finished = True
        elif reading.changed or reading.notes:
            reading.question = "" if reading.changed else "What would you like?"
        elif "total" in signs and self.order.lines:
            reading.question = f"That comes to {self.order.price}. Anything else?"
        elif "repeat" in signs:
            reading.question = f"You have {self.order or 'nothing yet'}. Anything else?"
        elif signs & {"ask", "offer", "total"}:
            self.ask(MENU)
        else:
            self.answer_word(signs, closing)

    def answer_word(self, signs: set[str], closing: bool) -> None:
        """Answer a sentence that names nothing ("yes", "no wait", "okay") or was not understood."""
        so_far = f"You have {self.order}. " if self.order.lines else ""
        if closing and signs & {"yes", "fine"} and "no" not in signs:
            self.reading.finished = True
        elif signs & {"wait", "wrong", "mean", "instead", "change", "make"}:
            self.correcting = True
            self.ask(f"{so_far}What would you like to change?" if so_far else "Yes?")
        elif closing and "no" in signs:
            self.correcting = True
            self.ask(f"{so_far}What would you like to change, or to add?")
        elif signs & {"no", "thanks", "fine", "no more"}:
            self.closing, self.correcting = True, "no" in signs
            self.ask(f"{so_far}Is that all?")
        elif "yes" in signs and self.asked:
            self.order_asked(Thing(count=1))
        elif "yes" in signs:
            self.ask("What would you like?")
        elif signs & {"remove", "out"} and self.order.lines:
            self.ask_what_to_remove()
        elif "hello" in signs and not so_far:
            self.ask("Hello! What would you like?")
        elif "pause" in signs:
            self.ask("Take your time. What would you like?")
        else:
            self.ask("Sorry, I did not understand that. We have coffee, tea and cakes. " + (
                f"{so_far}What else would you like?" if so_far else "What would you like?"
            ))  # fmt: skip

    def ask_what_to_remove(self) -> None:
        """Ask what to remove from the order."""

        def answer(thing: Thing) -> bool:
            self.refuse(Clause("remove", denied=[thing]))
            return True

        self.pending = answer
        self.ask("What shall I leave out, or everything?")

    def undo(self, order: Order, following: Clause) -> None:
        """Go back to an earlier order, unless the next clause names a replacement."""
        if not following.said:
            self.order, self.focus = order.copy(), []
            self.reading.changed = True

    # --- clauses -----------------------------------------------------------------------------

    def do(self, clause: Clause, signs: set[str]) -> None:
        """Apply one clause."""
        clause.said, clause.denied = self.known(clause.said), self.known(clause.denied)
        match clause.mode:
            case "clear":
                self.clear()
            case "ask":
                if clause.said and not ("repeat" in signs and any(map(self.has, clause.said))):
                    self.tell(clause.said)
            case "keep":
                self.reading.changed |= bool(clause.said)
            case "except":
                kept = [line for thing in clause.said for line in self.named(thing)]
                self.order.lines = [line for line in self.order.lines if line in kept]
                self.done()
            case "unclear":
                self.ask("Sorry, what would you like?")
            case "remove" if clause.said and any(one.ref == "all" for one in clause.denied):
                self.order.lines.clear()
                self.order_things(Clause("", clause.said), agreed=False)
            case _ if clause.denied and clause.said:
                self.exchange(clause)
            case _ if clause.denied:
                self.refuse(clause)
            case _ if clause.said:
                self.order_things(clause, "yes" in signs)

    def clear(self) -> None:
        self.order.lines.clear()
        self.focus = []
        self.ask("All right, nothing is ordered. What would you like?")

    def known(self, things: list[Thing]) -> list[Thing]:
        """Return the things that are on the menu or in the order; note the others."""
        known = []
        for thing in things:
            if not thing.unknown:
                known.append(thing)
            elif thing.after in OPENS_UNKNOWN or not (thing.definite or thing.after == "for"):
                self.reading.notes.append(f"Sorry, {thing.name} is not on our menu.")
        return known

    def tell(self, things: list[Thing]) -> None:
        """Answer a question about things: their price, or what there is of a kind."""
        self.asked = []
        for thing in things:
            names = [thing.item] if thing.item else KINDS[thing.kind]
            self.asked += [name for name in names if not self.has(Thing(item=name))]
            prices = [
                f"{'an' if n[0] in 'aeiou' else 'a'} {n} is {dollars(PRICES[n])}" for n in names
            ]
            if prices:
                self.reading.notes.append(f"{listed(prices).capitalize()}.")
        self.ask("Would you like one?" if self.asked else "" if self.reading.notes else MENU)

    def refuse(self, clause: Clause) -> None:
        """Remove things from the order."""
        for thing in clause.denied:
            if thing.ref == "all":
                self.clear()
                return
            if clause.mode == "change":
                self.which(thing, partial(self.ask_new, source=thing))
            elif not (thing.item or thing.kind or thing.ref or thing.one or thing.part):
                self.correcting = True  # "not two"
                self.ask("What would you like instead?")
            elif not self.named(thing):
                self.reading.notes.append(
                    f"There is no {thing.item or 'such thing'} in your order."
                )
            else:
                whole = clause.mode != "remove" or (thing.definite and not thing.part)
                n = thing.count or (1 if thing.article else None)
                self.each_named(thing, partial(self.remove, count=None if whole else n))

    def ask_new(self, line: Line, source: Thing) -> None:
        """Ask what a line should become."""
        self.pending = lambda thing: self.put(line, thing, source)
        self.ask(f"What would you like instead of the {line.name}?")

    def exchange(self, clause: Clause) -> None:
        """Replace things with others."""
        named = [thing for thing in clause.said if thing.ref not in ("it", "that")]
        said = named or clause.said[:1]
        lines = self.named(clause.denied[0])
        if len(clause.denied) == 1 < len(said) and len(lines) == 1 and all(map(is_fragment, said)):
            said = completed([replace(said[0], item=lines[0].item), *said[1:]])
            if len(said) > 1:  # "make that two, one large, one small"
                self.order.lines.remove(lines[0])
                self.order_things(Clause("add", said), False)
                return
        for source in clause.denied:
            new = said.pop(0) if said else None
            if new is None and is_fragment(source):
                pass  # "make it small instead of large"
            elif new and new.definite and new.item and self.has(new):
                self.refuse(Clause("remove", denied=[source]))
                self.order_things(Clause("", [new]), False)
            elif new is None:
                self.refuse(Clause("remove", denied=[source]))
            elif not self.order.lines or not (self.named(source) or source.ref):
                self.order_things(Clause(clause.mode, [new]), False)
            elif source.ref in ("them", "those", "all") or source.plural:
                lines = [*self.named(source)]
                fitting = self.fitting(lines, new)  # a cake becomes a tea only if nothing else can
                for line in lines if new.item and len(fitting) < 2 else fitting:
                    self.put(line, new, source)
            else:
                self.which(source, partial(self.put, new=new, source=source), new)
        if said:
            self.order_things(Clause("add", said), False)

    def order_things(self, clause: Clause, agreed: bool) -> None:
        """Order the named things, or change the order."""
        things = completed(clause.said)
        if [thing.ref in ("them", "those") for thing in things] == [True, False]:
            self.exchange(Clause("change", things[1:], things[:1]))  # "both large"
            return
        if len(things) == 2 and things[0].ref in ("it", "that") and not things[1].after:
            clause = Clause("correct", things[1:])  # "it is a small latte"
            things = clause.said
        if any(thing.after == "or" for thing in things):
            self.choice(things)
            return
        if clause.mode != "add" and self.divide(things):
            return
        each = next((thing for thing in things if thing.each), None)
        if each is not None:
            self.each(things, each)
            return
        taken: list[Line] = []  # lines already used by this clause
        for thing in things:
            self.latest = []
            if agreed and thing.item and self.same(thing):
                self.done(*self.same(thing))
            elif clause.mode == "correct" and not thing.more and not thing.same:
                self.correct(thing, taken, strict=not taken)
            elif clause.mode == "wait" and not thing.more and not thing.same:
                self.correct(thing, taken, strict=False)
            else:
                self.add(thing, clause.mode == "add")
            taken += self.latest

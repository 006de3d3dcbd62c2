"""Applies one thing that was said to an order."""

from dataclasses import replace

from .ellipsis import absolute, is_fragment, merged
from .menu import DRINKS, KINDS, MOST, NUMBERS, Line, kind_of, listed
from .phrases import Thing
from .references import References, unique


class Changes(References):
    """Orders, changes and corrects things, and asks for missing details."""

    def remove(self, line: Line, count: int | None) -> None:
        line.count = 0 if count is None else line.count - count
        self.done()

    def add(self, thing: Thing, more: bool) -> None:
        """Order another thing, or apply a thing without a name to the order."""
        sized = thing.size or thing.new_size
        lines = self.named(thing)
        if thing.same:
            self.again(absolute(sized))
        elif thing.part and thing.one and sized:  # "two of the small ones"
            whose = replace(thing, part=False, count=None)
            self.which(whose, lambda line: self.put(line, Thing(count=thing.count)))
        elif thing.part and sized and not thing.just:
            new = Thing(size=sized)
            self.which(replace(thing, ref="it", size=""), lambda line: self.put(line, new, thing))
        elif thing.less:
            self.each_named(
                replace(thing, ref="" if thing.item else "it"),
                lambda line: self.remove(line, thing.count or 1),
            )
        elif thing.more and not thing.size:
            self.more(thing)
        elif (
            thing.item
            and self.has(thing)
            and (thing.just or thing.definite or sized in ("larger", "smaller"))
        ):
            self.mention(thing, lines)
        elif thing.item and thing.is_bare and self.has(thing) and not more and not thing.after:
            self.asked = [thing.item]  # said again: repeated, or wanted twice?
            self.ask(f"Would you like another {thing.item}?")
        elif thing.item or thing.kind:
            self.order_new(thing)
        elif self.asked and (thing.count or thing.one or thing.article or thing.ref):
            self.order_asked(thing)
        elif thing.ref:
            pass  # "I want that" names nothing
        elif thing.part and not thing.just and any((thing.count or 1) < one.count for one in lines):
            self.ask(f"What about {NUMBERS[thing.count or 1]} of them?")
        elif thing.definite and lines and thing.size:
            self.done(*lines)
        elif (more or thing.after == "and" or thing.more) and sized and self.drinks():
            self.which(
                Thing(ref="it"), lambda line: self.order_new(replace(thing, item=line.item)), thing
            )
        elif more or thing.after == "and":
            self.ask(f"{NUMBERS[min(thing.count or 1, MOST)].capitalize()} of what?")
        elif self.order.lines:
            self.which(Thing(ref="it"), lambda line: self.put(line, thing), thing)
        else:
            self.incomplete(thing)

    def incomplete(self, thing: Thing) -> None:
        """Ask for the name of what was ordered without one."""
        self.pending = lambda other: bool(other.item) and self.order_new(merged(thing, other))
        self.ask("Of what?" if thing.count else f"A {thing.size or thing.new_size} what?")

    def order_new(self, thing: Thing) -> bool:
        """Order a named thing, or ask for what is missing; return True."""
        if thing.kind:
            self.pending = lambda other: bool(other.item) and self.order_new(merged(thing, other))
            self.ask(f"Which one would you like, {listed(KINDS[thing.kind], 'or')}?")
        elif not thing.item:
            self.incomplete(thing)
        elif thing.unclear or (thing.count is None and (thing.plural or thing.some)):
            self.ask_how_many(thing, f"How many {thing.item}s?")
        elif (count := 1 if thing.count is None else thing.count) + self.ordered(thing) > MOST:
            most = f"We make {MOST} of one kind at most. "
            self.ask_how_many(thing, f"{most}How many {thing.item}s would you like?")
        elif count == 0:
            self.each_named(thing, lambda line: self.remove(line, None))
        else:
            size = absolute(thing.size or thing.new_size)
            self.done(self.order.add(thing.item, count, size if thing.item in DRINKS else ""))
        return True

    def ask_how_many(self, thing: Thing, question: str) -> None:
        """Ask how many, and order them after the answer."""
        self.pending = lambda other: (
            other.count is not None
            and other.item in ("", thing.item)
            and self.order_new(merged(replace(thing, unclear=False), other))
        )
        self.ask(question)

    def order_asked(self, thing: Thing) -> None:
        """Order what the guest has just asked about."""
        asked, self.asked = self.asked, []
        if len(asked) == 1:
            self.order_new(Thing(item=asked[0], count=thing.count, size=thing.size))
        else:
            self.pending = lambda other: bool(other.item) and self.order_new(merged(thing, other))
            self.ask(f"Which one would you like, {listed(asked, 'or')}?")

    def mention(self, thing: Thing, lines: list[Line]) -> None:
        """Handle a thing in the order: "just the latte", "just one latte", "the latte large"."""
        if thing.just and thing.definite:
            self.order.lines = lines
            self.done(*lines)
        elif thing.part and not thing.just and lines and (thing.count or 1) < lines[0].count:
            self.ask(f"What about {thing.count or 'one'!s} of the {thing.item}s?")
        elif thing.size or thing.new_size or thing.count is not None:
            self.which(Thing(item=thing.item), lambda line: self.put(line, thing), thing)
        else:
            self.done(*lines)

    def again(self, size: str) -> None:
        """Order the same again."""
        if not self.order.lines:
            self.ask("The same as what?")
        for line in [*(self.focus or self.order.lines)]:
            self.order_new(Thing(item=line.item, count=line.count, size=size or line.size))

    def more(self, thing: Thing) -> None:
        """Order more of what was ordered."""
        count = 1 if thing.count is None else thing.count
        if thing.item and not self.has(thing):
            self.order_new(Thing(item=thing.item, count=count))
        elif not self.order.lines:
            self.ask("Of what?")
        else:
            self.which(
                Thing(item=thing.item, kind=thing.kind, ref="" if thing.item else "it"),
                lambda line: self.order_new(Thing(item=line.item, count=count, size=line.size)),
                thing,
            )

    def each(self, things: list[Thing], each: Thing) -> None:
        """Order a number of each thing that was named, asked about, or ordered."""
        count, named_now = each.count or 1, [thing for thing in things if thing.item]
        asked = [Thing(item=item) for item in (KINDS[each.kind] or self.asked)]
        for thing in named_now or asked:
            self.order_new(Thing(item=thing.item, size=thing.size or thing.new_size, count=count))
        if not (named_now or asked):
            for line in [*(self.focus or self.order.lines)]:
                self.put(line, Thing(count=count + each.more * line.count))
        if not self.reading.changed:
            self.ask("One of each of what?")

    def divide(self, things: list[Thing]) -> bool:
        """Split a line by size ("one large, the other small"); return whether it did."""
        parts = [thing for thing in things if thing.ref != "other"]
        lines = [line for line in self.focus if line.item in DRINKS] or self.drinks()
        sizes = [part.size or part.new_size for part in parts if is_fragment(part)]
        if not (len(lines) == 1 and len(parts) == len(sizes) > 1 and all(sizes)):
            return False
        [line], told = lines, [part.count or int(part.article) for part in parts]
        counts = [count or line.count - sum(told) for count in told]
        if min(counts) < 1 or sum(counts) != line.count:
            return False
        self.order.lines.remove(line)
        for count, size in zip(counts, sizes, strict=True):
            self.order_new(Thing(item=line.item, count=count, size=size))
        return True

    def choice(self, things: list[Thing]) -> None:
        """Ask which one of several things."""
        last = things[-1]
        if last.item and last.count is not None and all(map(is_fragment, things[:-1])):
            self.order_new(replace(last, count=None, some=True))  # "two or three cookies"
            return
        named = [thing for thing in things if thing.item] or [Thing()]
        self.pending = lambda other: (
            bool(other.item or other.size)
            and self.order_new(merged(last if other.item else named[0], other))
        )
        names = [f"{thing.size} {thing.item}".strip() for thing in named]
        self.ask(f"Which one would you like, {listed(names, 'or')}?")

    def correct(self, thing: Thing, taken: list[Line], *, strict: bool) -> None:
        """Replace what a thing corrects."""
        if not self.order.lines:
            self.add(thing, False)
            return
        if not thing.item and not thing.kind:
            self.add(replace(thing, after=""), False)
            return
        lines = [line for line in self.focus + self.order.lines if line not in taken]
        same = [line for line in self.order.lines if line.item == thing.item]
        alike = self.fitting(lines, thing)
        if same:
            self.which(Thing(item=thing.item), lambda line: self.put(line, thing), thing)
        elif thing.kind:
            self.order_new(thing)
        elif alike or (strict and lines):
            near = [line for line in alike or lines if line in self.focus] or alike or lines
            if all(line in self.touched for line in near):
                near = near[-1:]  # just said: the last one is being corrected
            self.choose(unique(near), lambda line: self.put(line, thing))
        else:
            self.add(thing, True)

    def ask_what_to_put(self, line: Line, new: Thing, source: Thing | None) -> None:
        """Ask which thing, or how many, a line should become."""
        clear = replace(new, kind="", unclear=False, count=None)
        self.pending = lambda other: (
            bool(other.item if new.kind else other.count is not None and not other.item)
            and self.put(line, merged(clear, other), source)
        )
        if new.kind:
            self.ask(f"Which one would you like, {listed(KINDS[new.kind], 'or')}?")
        else:
            self.ask(f"How many {new.item or line.item}s? We make {MOST} of one kind at most.")

    def put(self, line: Line, new: Thing, source: Thing | None = None) -> bool:
        """Change a line, or part of it, as said; return whether something was said."""
        item = new.item or line.item
        if new.count == 0 and not new.item:
            self.closing = True
            self.ask(f"You have {self.order}. Is that all?")
            return True
        count = new.count if new.count is not None else line.count
        if new.count is None and new.article and new.item:
            count = 1
        twins = self.ordered(Thing(item=item)) - (line.count if line.item == item else 0)
        if count + twins > MOST or new.unclear or new.kind:
            self.ask_what_to_put(line, new, source)
            return True
        size = absolute(new.size or new.new_size, line.size)
        if kind_of(item) == kind_of(line.item):
            size = size or line.size
        if source and source.is_some_of_it and (source.count or 1) < line.count:
            line.count -= source.count or 1
            line = Line(line.item, source.count or 1)
            self.order.lines.append(line)
            count = new.count or line.count
        line.item, line.count, line.size = item, count, size if item in DRINKS else ""
        self.done(line)
        return True

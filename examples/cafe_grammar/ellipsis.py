"""Completes what is left out: "a large and a small latte", "two teas, one large, one small"."""

from dataclasses import replace

from .menu import DRINKS, SIZES
from .phrases import Thing


def is_fragment(thing: Thing) -> bool:
    """Return whether a thing is only a number or a size."""
    named = thing.item or thing.kind or thing.ref or thing.definite
    return not (named or thing.more or thing.same or thing.each)


def merged(start: Thing, rest: Thing) -> Thing:
    """Return the second of two things, completed with details from the first."""
    return replace(
        rest,
        item=rest.item or start.item,
        size=rest.size or rest.new_size or start.size or start.new_size,
        new_size="",
        count=rest.count if rest.count is not None else start.count,
        article=rest.article or start.article,
        after=start.after,
    )


def absolute(size: str, old: str = "") -> str:
    """Return a size in words of the menu; "larger" is one step from the old one."""
    if size not in ("smaller", "larger"):
        return size
    at = SIZES.index(old) if old else 1
    return SIZES[min(at + 1, 2) if size == "larger" else max(at - 1, 0)]


def completed(things: list[Thing]) -> list[Thing]:
    """Give fragments the names of the things they stand beside."""
    found: list[Thing] = []
    for n, thing in enumerate(things):
        before = found[-1] if found else Thing()
        size = thing.size or thing.new_size
        if is_fragment(thing) and (following := name_behind(things[n:])):
            found.append(replace(thing, item=following))
        elif (before.same or before.more) and is_fragment(thing) and size and not before.item:
            found[-1] = replace(before, size=size)  # "the same again, but large"
        elif before.same and thing.item:
            found[-1] = thing
        elif thing.ref in ("those", "them") and found:
            continue  # "a latte and a tea, both large"
        elif is_fragment(thing) and size and things[n - 1].ref and before.item in DRINKS:
            found = [replace(one, size=size if one.item in DRINKS else "") for one in found]
        elif is_fragment(thing) and before.item in DRINKS and size:
            complete(found, thing)
        elif is_fragment(thing) and before.item and before.count is None and not before.article:
            found[-1] = merged(before, thing)  # "lattes, two"
        else:
            found.append(thing)
    return distributed(found)


def name_behind(things: list[Thing]) -> str:
    """Return the name that "a large" gets from "and a small latte" after it."""
    for n, thing in enumerate(things):
        if n and thing.item in DRINKS and thing.size:
            return thing.item
        if not (is_fragment(thing) and thing.size):
            break
    return ""


def complete(found: list[Thing], thing: Thing) -> None:
    """Apply a size to the drink before, or order another one of it."""
    before = found[-1]
    is_new = thing.count is not None or (thing.after == "and" and thing.article)
    if not (before.size or before.new_size or is_new):
        found[-1] = replace(before, size=thing.size or thing.new_size)
    else:
        found.append(replace(thing, item=before.item))


def distributed(things: list[Thing]) -> list[Thing]:
    """Drop "two lattes" if "one large, one small" says which two they are."""
    for n, whole in enumerate(things):
        parts = [
            one for one in things[n + 1 :] if one.item == whole.item and one.size and one.count
        ]
        sizes_follow = parts and parts == things[n + 1 : n + 1 + len(parts)]
        as_many = whole.count == sum(one.count or 0 for one in parts)
        if sizes_follow and as_many and not whole.size and parts[0].after != "and":
            return [*things[:n], *things[n + 1 :]]
    return things

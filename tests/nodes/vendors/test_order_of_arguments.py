"""Who knows one vendor's constructor knows all: their arguments come in one order."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bargein import ears, llm, realtime, voices

WHOM = ("api_key", "model", "voice")
WHAT = ("language", "languages", "language_hints", "keyterms", "keywords")
OWN = "the vendor's own"
WHERE = ("options", "base_url")
HOW_LONG = ("limits", "limit_s", "connect_s", "first_audio_s", "next_audio_s", "attempts", "random")
ORDER = (*WHOM, *WHAT, OWN, *WHERE, *HOW_LONG)

FIRST = {"model", "voice", "deployment"}
"""What may stand before the others, without its name."""


def shared(made: type[Any]) -> dict[str, str]:
    """Return what a class takes as all of its kind do, each argument with its type."""
    parameters = inspect.signature(made).parameters.values()
    of_kind = [one.annotation for one in parameters if one.kind is one.VAR_KEYWORD]
    found = re.fullmatch(r"Unpack\[(\w+Arguments)\]", str(of_kind[0])) if of_kind else None
    return made.__init__.__globals__[found[1]].__annotations__ if found else {}


def constructors() -> Iterator[type[Any]]:
    """Yield each public class that is configured with headers of the user's."""
    for module in (ears, llm, realtime, voices):
        for thing in (getattr(module, name) for name in module.__all__):
            if inspect.isclass(thing) and hasattr(thing, "__init__") and "headers" in shared(thing):
                yield thing


ALL = sorted(constructors(), key=lambda one: one.__name__)


def test_all_vendors_are_there():
    """The signatures that are read are those of every vendor."""
    assert len(ALL) >= 20
    assert {"DeepgramFlux", "RimeVoice", "AzureChat", "OpenAIRealtime"} <= {a.__name__ for a in ALL}


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.__name__)
def test_arguments_come_in_one_order(made: type[Any]):
    """First whom to ask, then what is said, the vendor's own, and last what all of a kind take."""
    *own, last = inspect.signature(made).parameters.values()
    named = [one.name for one in own if one.kind is one.KEYWORD_ONLY]
    ranks = [ORDER.index(name if name in ORDER else OWN) for name in named]
    assert ranks == sorted(ranks), named
    assert {one.name for one in own} - set(named) <= FIRST
    assert last.kind is last.VAR_KEYWORD
    assert {"api_key", "headers", "query"} <= {*named, *shared(made)}
    assert len({"base_url", "endpoint"} & {*named, *shared(made)}) == 1
    assert len({"dial", "transport"} & shared(made).keys()) == 1


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.__name__)
def test_each_argument_is_explained_in_its_place(made: type[Any]):
    """The docstring has all arguments of the signature, in their order."""
    text = inspect.getdoc(made.__init__) or ""
    listed = text.partition("Args:\n")[2].partition("\nRaises:")[0]
    explained = re.findall(r"^    (\w+): ", listed, re.MULTILINE)
    assert explained == [*inspect.signature(made).parameters]


def test_a_key_is_of_one_type_everywhere():
    """What all vendors take has one annotation and one default."""
    keys = [inspect.signature(made).parameters["api_key"] for made in ALL]
    assert {(key.annotation, key.default) for key in keys} == {("str | None", None)}


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.__name__)
def test_an_address_has_one_word(made: type[Any]):
    """Another word for it is refused, and the error says the right one; so is a typo."""
    right = "endpoint" if made.__name__.startswith("Azure") else "base_url"
    wrong = {"url", "base_url", "endpoint"} - {right}
    given: dict[str, Any] = {"api_key": "k"}
    given |= {"endpoint": "http://a"} if right == "endpoint" else {}
    first = [one for one in FIRST if one in inspect.signature(made).parameters]
    given |= dict.fromkeys(first, "any")
    for word in wrong:
        with pytest.raises(TypeError, match=rf"{made.__name__}\({word}=\).*: write {right}="):
            made(**given, **{word: "http://b"})
    with pytest.raises(TypeError, match=rf"{made.__name__}\(\) got .* 'dail'"):
        made(**given, dail=None)

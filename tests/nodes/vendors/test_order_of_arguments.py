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
WHERE = ("options", "url", "base_url", "endpoint", "api_version", "headers", "query")
HOW_LONG = ("limits", "limit_s", "connect_s", "first_audio_s", "next_audio_s", "attempts", "random")
ORDER = (*WHOM, *WHAT, OWN, *WHERE, *HOW_LONG, "dial", "transport")

FIRST = {"model", "voice", "deployment"}
"""What may stand before the others, without its name."""


def constructors() -> Iterator[type[Any]]:
    """Yield each public class that is configured with headers of the user's."""
    for module in (ears, llm, realtime, voices):
        for thing in (getattr(module, name) for name in module.__all__):
            if inspect.isclass(thing) and "headers" in inspect.signature(thing).parameters:
                yield thing


ALL = sorted(constructors(), key=lambda one: one.__name__)


def test_all_vendors_are_there():
    """The signatures that are read are those of every vendor."""
    assert len(ALL) >= 20
    assert {"DeepgramFlux", "RimeVoice", "AzureChat", "OpenAIRealtime"} <= {a.__name__ for a in ALL}


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.__name__)
def test_arguments_come_in_one_order(made: type[Any]):
    """First whom to ask, then what is said, the vendor's own, where it is, and how long to wait."""
    parameters = inspect.signature(made).parameters.values()
    named = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    ranks = [ORDER.index(name if name in ORDER else OWN) for name in named]
    assert ranks == sorted(ranks), named
    assert {one.name for one in parameters} - set(named) <= FIRST
    assert {"api_key", "headers", "query"} <= set(named)
    assert {"url", "base_url", "endpoint"} & set(named)
    assert named[-1] in ("dial", "transport")


@pytest.mark.parametrize("made", ALL, ids=lambda made: made.__name__)
def test_each_argument_is_explained_in_its_place(made: type[Any]):
    """The docstring has all arguments of the signature, in their order."""
    text = inspect.getdoc(made.__init__) or ""
    listed = text.partition("Args:\n")[2].partition("\nRaises:")[0]
    explained = re.findall(r"^    (\w+): ", listed, re.MULTILINE)
    assert explained == [*inspect.signature(made).parameters]


@pytest.mark.parametrize("name", [*WHOM[:1], *WHERE[-2:], "dial", "transport"])
def test_an_argument_is_of_one_type_everywhere(name: str):
    """What all vendors take has one annotation and one default."""
    found = {
        (parameter.annotation, parameter.default)
        for made in ALL
        for parameter in inspect.signature(made).parameters.values()
        if parameter.name == name
    }
    assert len(found) == 1

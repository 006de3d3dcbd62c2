"""Bytes of a terminal become the same keys however they are cut."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bargein.bridge.console._keys import LONE_ESC_S, MAX_PASTE, SEQUENCE_S, Key, KeyParser

KEYS = {
    b"\r": "enter",
    b"\n": "ctrl+j",
    b"\t": "tab",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x01": "ctrl+a",
    b"\x17": "ctrl+w",
    b"\x1a": "ctrl+z",
    b"\x00": "ctrl+space",
    b"\x1f": "unknown",
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[D": "left",
    b"\x1b[1;5D": "ctrl+left",
    b"\x1b[1;3C": "alt+right",
    b"\x1b\x1b[C": "alt+right",
    b"\x1b[H": "home",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[3~": "delete",
    b"\x1b[3;5~": "ctrl+delete",
    b"\x1b[15~": "unknown",
    b"\x1bOP": "unknown",
    b"\x1b[I": "unknown",
    b"\x1b[24;80R": "unknown",
    b"\x1b[<0;10;10M": "unknown",
    b"\x1bb": "alt+b",
    b"\x1b\x7f": "alt+backspace",
    b"\x1b\r": "alt+enter",
    b"\x1b\xc3\xa9": "alt+é",
    b"\xc2\x9b": "unknown",
}


def keys_of(*pieces: bytes) -> list[Key]:
    """Return the keys of bytes that come in pieces, without a pause."""
    parser = KeyParser()
    return [key for piece in pieces for key in parser.feed(piece)]


@pytest.mark.parametrize(("data", "name"), KEYS.items())
def test_a_key(data, name):
    """Each key is told by its bytes, and nothing of it is left."""
    parser = KeyParser()
    assert [key.name for key in parser.feed(data)] == [name]
    assert parser.patience_s == math.inf
    assert parser.feed(b"x") == [Key("text", "x")]


@pytest.mark.parametrize("text", ["a", "é", "日", "🙂", " "])
def test_text(text):
    """A character is itself, whatever its length in bytes."""
    assert keys_of(text.encode()) == [Key("text", text)]


PARTS = st.one_of(st.binary(max_size=6), st.sampled_from([*KEYS, b"\x1b[200~", b"\x1b[201~"]))


@given(st.lists(PARTS), st.data())
@example([b"\x1b[200~a\x1b", b"[201~b"], None)
def test_pieces_do_not_matter(parts, data):
    """However the bytes are cut, the keys are the same."""
    whole = b"".join(parts)
    size = len(whole)
    cuts = [] if data is None else sorted(data.draw(st.lists(st.integers(0, size), max_size=8)))
    cuts = cuts or list(range(size))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    one, many = KeyParser(), KeyParser()
    told = one.feed(whole)
    assert [key for piece in pieces for key in many.feed(piece)] == told
    assert one.patience_s == many.patience_s
    assert one.expire() == many.expire()


@given(st.binary(max_size=60))
def test_any_bytes_are_taken(data):
    """No bytes fail, and after a pause nothing waits but the end of a paste."""
    parser = KeyParser()
    parser.feed(data)
    parser.expire()
    if not data.count(b"\x1b[200~"):
        assert parser.patience_s == math.inf


def test_a_lone_esc():
    """An Esc is one after a pause alone."""
    parser = KeyParser()
    assert parser.feed(b"\x1b") == []
    assert parser.patience_s == LONE_ESC_S
    assert parser.expire() == [Key("esc")]
    assert parser.expire() == []


def test_esc_twice():
    """Two Esc are two; with a third the first is certain."""
    parser = KeyParser()
    parser.feed(b"\x1b\x1b")
    assert parser.patience_s == LONE_ESC_S
    assert parser.expire() == [Key("esc"), Key("esc")]
    assert KeyParser().feed(b"\x1b\x1b\x1b") == [Key("esc")]


@pytest.mark.parametrize("begun", [b"\x1b[", b"\x1b[1;", b"\x1bO", b"\xe6\x97"])
def test_half_a_sequence(begun):
    """Half a sequence is no Esc: it waits longer for its rest, and is nothing without it."""
    parser = KeyParser()
    assert parser.feed(begun) == []
    assert parser.patience_s == SEQUENCE_S
    assert parser.expire() == [Key("unknown")]


def test_a_paste_is_text():
    """Within a paste no byte is a key, and it has all the time it takes."""
    parser = KeyParser()
    assert parser.feed(b"\x1b[200~one\r\x1b\x03two\x1b[A") == []
    assert parser.patience_s == math.inf
    assert parser.expire() == []
    assert parser.feed(b"\x1b[201~x") == [
        Key("paste", "one\r\x1b\x03two\x1b[A"),
        Key("text", "x"),
    ]


def test_a_paste_without_end():
    """A paste that does not end is handed on in parts, and can be left."""
    parser = KeyParser()
    [part] = parser.feed(b"\x1b[200~" + b"x" * (MAX_PASTE + 20))
    assert part == Key("paste", "x" * MAX_PASTE)
    parser.reset()
    assert parser.feed(b"a") == [Key("text", "a")]


@pytest.mark.parametrize("data", [b"\xff", b"\xc3(", b"\xe6\x97x", b"\x80", b"\xf8"])
def test_bytes_that_are_no_text(data):
    """What is no UTF-8 is shown as such, and what follows it is not lost."""
    keys = keys_of(data + b"ok")
    assert keys[0] == Key("text", "\ufffd")
    assert "".join(key.text for key in keys).endswith("ok")

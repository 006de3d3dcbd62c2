"""The line that is typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.bridge.console._editor import MAX_HISTORY, LineEditor
from bargein.bridge.console._keys import Key


def typed(*keys: str, editor: LineEditor | None = None) -> LineEditor:
    """Return an editor after keys: names in angle brackets, else text."""
    editor = editor or LineEditor()
    for key in keys:
        if key.startswith("<"):
            assert editor.press(Key(key[1:-1])), key
        else:
            for character in key:
                editor.press(Key("text", character))
    return editor


def shown(editor: LineEditor) -> str:
    """Return the text with the cursor in it."""
    return f"{editor.text[: editor.cursor]}|{editor.text[editor.cursor :]}"


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (["abc"], "abc|"),
        (["abc", "<left>", "x"], "abx|c"),
        (["abc", "<home>", "x", "<end>", "y"], "xabcy|"),
        (["abc", "<ctrl+a>", "<right>", "<ctrl+f>", "<ctrl+b>", "-"], "a-|bc"),
        (["abc", "<backspace>"], "ab|"),
        (["abc", "<home>", "<backspace>", "<delete>"], "|bc"),
        (["abc", "<left>", "<ctrl+d>", "<ctrl+d>"], "ab|"),
        (["one two", "<ctrl+w>"], "one |"),
        (["one two ", "<alt+backspace>", "<ctrl+y>", "<ctrl+y>"], "one two two |"),
        (["one two", "<home>", "<alt+d>"], "| two"),
        (["one two", "<alt+b>", "<ctrl+k>"], "one |"),
        (["one two", "<alt+b>", "<ctrl+u>"], "|two"),
        (["one, two", "<ctrl+left>", "<alt+left>"], "|one, two"),
        (["one, two", "<home>", "<alt+f>", "<ctrl+right>"], "one, two|"),
        (["a", "<alt+enter>", "b", "<ctrl+j>", "c"], "a\nb\nc|"),
        (["abc", "<ctrl+j>", "defg", "<up>", "x"], "abcx|\ndefg"),
        (["abc", "<ctrl+j>", "d", "<up>", "<home>", "<down>", "x"], "abc\nx|d"),
        (["abc", "<ctrl+j>", "d", "<up>", "<down>"], "abc\nd|"),
        (["ab", "<ctrl+j>", "c", "<home>", "<left>", "<ctrl+k>"], "ab|c"),
        (["日本", "<left>", "<backspace>"], "|本"),
        (["e\u0301x", "<left>", "<left>", "-"], "-|e\u0301x"),
        (["xe\u0301", "<backspace>"], "x|"),
        (["a👩\u200d👧b", "<left>", "<backspace>"], "a|b"),
    ],
)
def test_editing(keys, result):
    """Keys move and change as in other line editors."""
    assert shown(typed(*keys)) == result


@pytest.mark.parametrize("name", ["enter", "esc", "unknown", "tab", "alt+x", "ctrl+t", "pageup"])
def test_other_keys_do_nothing(name):
    """What is no key of an editor changes nothing, and that is told."""
    editor = typed("abc")
    assert not editor.press(Key(name))
    assert shown(editor) == "abc|"


def test_a_paste_is_cleaned():
    """What is pasted keeps its lines and loses what a terminal would obey."""
    editor = typed("a")
    editor.press(Key("paste", "one\r\ntwo\rthree\x1b[31m\t\x07end"))
    assert editor.text == "aone\ntwo\nthree    end"


def test_history():
    """Up and down go through what was entered, and back to what was being typed."""
    editor = LineEditor()
    editor.remember(["from before"])
    for entry in ("one", "two", "two"):
        assert typed(entry, editor=editor).take() == entry
    typed("dra", "<up>", editor=editor)
    assert shown(editor) == "two|"
    assert shown(typed("<up>", editor=editor)) == "one|"
    assert shown(typed("<up>", "<up>", editor=editor)) == "from before|"
    assert shown(typed("<down>", "<down>", "<down>", "<down>", editor=editor)) == "dra|"


def test_the_history_is_bounded():
    """The oldest entries are forgotten."""
    editor = LineEditor()
    for number in range(MAX_HISTORY + 10):
        typed(f"entry {number}", editor=editor).take()
    typed(*["<up>"] * (MAX_HISTORY + 20), editor=editor)
    assert editor.text == "entry 10"


def test_what_is_cleared_can_be_brought_back():
    """A cleared line is not lost."""
    editor = typed("precious")
    editor.clear()
    assert shown(editor) == "|"
    assert shown(typed("<ctrl+y>", editor=editor)) == "precious|"


NAMES = ["left", "right", "home", "end", "up", "down", "backspace", "delete", "ctrl+k", "ctrl+u",
         "ctrl+w", "alt+d", "alt+b", "alt+f", "ctrl+y", "ctrl+j"]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(NAMES), st.text(max_size=3).map(lambda t: f"={t}"))))
def test_the_cursor_is_always_in_the_text(keys):
    """Whatever is pressed, the cursor stays in the text, and never within a joined character."""
    editor = LineEditor()
    for key in keys:
        editor.press(Key("paste", key[1:]) if key.startswith("=") else Key(key))
        assert 0 <= editor.cursor <= len(editor.text)

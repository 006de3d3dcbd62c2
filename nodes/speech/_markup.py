"""Takes marks out of streamed text that voices would read aloud, and leaves its words.

Rules:
1. The written parts, joined, are the text; no character is lost or changed.
2. A mark is judged by the characters beside it, never by a partner that may not come: words are
   delayed only inside the target of a link, a tag, and code, which are not spoken.
3. What may be meant is kept: "3 * 4", "snake_case", "a < b", "C#", addresses.
4. Nothing that is left can steer a voice: no tag, and no two brackets.
"""

# ruff: noqa: RUF001 (this module handles the marks of other scripts)

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

_EMOJI = re.compile(
    "(?:[\U0001f000-\U0001faff\u2600-\u27bf\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa\u25ab"
    "\u25b6\u25c0\u25fb-\u25fe\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297"
    "\u3299\u2122\u00ae\u2194-\u2199\u21a9\u21aa](?:[\ufe0e\ufe0f\u20e3\u200d\U0001f3fb-\U0001f3ff]"
    "|[\U000e0020-\U000e007f])*)+"
)
"""A row of emoji: those of Unicode's ``emoji-data.txt`` with ``Extended_Pictographic`` or
``Emoji_Presentation``, apart from digits, "#", "*" and "©", and what modifies them."""

_SILENT_CHARACTERS = frozenset(
    "\ufe0e\ufe0f\u20e3\u00ad\u200b\u2060\ufeff\ufffc\ufffd"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
) | {chr(code) for code in range(0xE0000, 0xE0080)}
"""Variation selectors, keycaps, hyphens that show only at a line's end, zero-width blanks, marks of
the direction of writing, replacements of what could not be read, and tags. Joiners are kept, with
which scripts of India and Persia are spelled."""


@dataclass(frozen=True, slots=True)
class SpokenPart:
    """A part of a text as it is written, and what a voice says for it."""

    written: str
    spoken: str
    """Equal to `written` where each character stands for itself; empty for what is not said."""


_LONGEST_TARGET = 2000
"""The longest target of a link that is kept until its end, in characters; addresses that browsers
take are not longer. A longer one holds an image."""

_LONGEST_DELAYED = 3000
"""After so many characters, what may be a mark is taken for text."""

_READ_AT_ONCE = 1000
"""A long text is read in parts of so many characters, which bounds the time for each."""

_LONGEST_JSON = 4000
"""After so many characters, an object that does not end counts as text."""

_PLAIN_FENCES = ("text", "txt", "plain", "plaintext", "markdown", "md")
"""Languages of code blocks whose contents are words."""

_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]{0,20})[ \t]*(?=\n|\Z)")
_RULE = re.compile(
    r"[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|=[= \t]{2,}"
    r"|\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*)(?=\n|\Z)"
)
_LINE_MARK = re.compile(
    r"[ \t]*(?:(?P<heading>\#{1,6})[ \t]+|(?P<quote>>[ \t]?)"
    r"|(?P<bullet>[-*+•‣▪◦–])[ \t]+(?:\[[ xX]\][ \t]+)?|(?P<row>\|)[ \t]*)"
)
_LINE_MAY_BEGIN = re.compile(
    r"[ \t]*(?:\#{0,6}[ \t]*|>|[-*+•‣▪◦–]?[ \t]*(?:\[(?:[ xX]\]?[ \t]*)?)?|(?:-[ \t]*)*"
    r"|(?:\*[ \t]*)*|(?:_[ \t]*)*|[= \t]*|[|:\- \t]*|`{1,2}|~{1,2}"
    r"|(?:`{3,}|~{3,})[ \t]*[\w+#.-]{0,20}[ \t]*|\{\s*|\[\s*(?:\{\s*)?)"
)
_JSON = re.compile(r"\[?\s*\{\s*\"")

_SPECIAL = re.compile(
    r"[\\*_~`!\[\]<>&|#:;=\-{}【\n\x00-\x08\x0b-\x1f\x7f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u20e3\u2122\u00ae\u2190-\u21ff\u2300-\u2bff\u3030\u303d\u3297\u3299\ud800-\udfff\ue000-\uf8ff"
    r"\ufe0f\ufeff\ufffc\ufffd\U0001f000-\U0001faff\U000e0000-\U000e007f]"
)
"""Characters that may not be said as they are."""

_RUN = re.compile(r"\*+|_+|~+|`+|=+|#+")
_TAG = re.compile(
    r"<!--.*?-->|<(?P<slash>/?)(?P<name>[A-Za-z][\w:.-]{0,40})"
    r"(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>]+))*\s*/?>|<[!?][A-Za-z][^<>]*>",
    re.DOTALL,
)
_MAY_BE_TAG = re.compile(
    r"<!(?:-(?:-.{0,2000})?)?|</?(?:[A-Za-z][\w:.-]{0,40}"
    r"(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>]+))*"
    r"(?:\s+(?:[\w:.-]+(?:\s*=\s*(?:\"[^\"<>]{0,1000}|'[^'<>]{0,1000})?)?)?)?\s*/?)?"
    r"|<[!?][A-Za-z][^<>]{0,200}",
    re.DOTALL,
)
_AUTOLINK = re.compile(r"<(?=(?:https?:|mailto:|tel:|www\.|[\w.+-]+@))")
_MAY_BE_AUTOLINK = re.compile(
    r"<(?:h(?:t(?:t(?:ps?)?)?)?|m(?:a(?:i(?:l(?:to?)?)?)?)?|t(?:el?)?|w{1,3}|[\w.+-]{1,64})?"
)
_TAG_BREAKS = frozenset(
    (
        *("br", "p", "li", "ul", "ol", "tr", "td", "th", "div", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("hr", "table", "section", "article", "blockquote", "pre", "dt", "dd", "header", "title"),
    )
)
"""Tags that end what is said before them."""
_TAG_HIDES = ("script", "style", "svg", "head")
"""Tags whose contents are no words."""

_TARGET = re.compile(
    r"\(\s*<?[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*>?"
    r"(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)
_MAY_BE_TARGET = re.compile(
    r"\(\s*<?[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*(?:\([^\s()]*)?>?"
    r"(?:\s+(?:\"[^\"\n]{0,300}\"?|'[^'\n]{0,300}'?)?)?\s*"
)
_REFERENCE = re.compile(r"\[[^\[\]\n]{0,60}\]")
_MAY_BE_REFERENCE = re.compile(r"\[[^\[\]\n]{0,60}")
_CITATION = re.compile(r"\[\^[^\]\s]{1,20}\]|\[\d[\d,\s–-]{0,12}\]|【\d[^】]{0,40}】")
_MAY_BE_CITATION = re.compile(r"\[(?:\^[^\]\s]{0,20}|\d[\d,\s–-]{0,12})?|【(?:\d[^】]{0,40})?")
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{1,6}|#[xX][0-9A-Fa-f]{1,5});")
_MAY_BE_ENTITY = re.compile(r"&(?:[A-Za-z]{0,8}|#\d{0,6}|#[xX][0-9A-Fa-f]{0,5})")
_EMOTICON = re.compile(r"(?:[:;=]['’]?-?[)(DPp|/]|<3)(?=[\s.,!?]|\Z)")
_MAY_BE_EMOTICON = re.compile(r"[:;=]['’]?-?[)(DPp|/]?")
_SHORTCODE = re.compile(r":(?=[a-z0-9_+-]*[a-z])[a-z0-9_+-]{2,30}:(?![\w:])")
_MAY_BE_SHORTCODE = re.compile(r":[a-z0-9_+-]{0,30}:?")
_ARROW = re.compile(r"[-=]+>")
_CELLS = re.compile(r"[ \t]*\|[ \t|]*")
_MAY_BE_CELLS = re.compile(r"[ \t]*(?:\|[ \t|]*)?")
_ADDRESS_ENDS = re.compile(r"[\s<>\"*`|\[\]{}。，、）】「」]")

_JSON_PAIRS = {"{": "}", "[": "]"}


class MarkupRemover:
    """Takes the marks out of one text that arrives in pieces."""

    def __init__(self) -> None:
        self._delayed = ""
        self._before = "\n"  # the written character before the held ones
        self._spoken_before = ""  # the last visible character said
        self._is_line_start = True
        self._in_row = False
        self._in_address = False
        self._in_target = False
        self._in_autolink = False
        self._brackets: list[bool] = []  # of each open one, whether it stands at a line's start
        self._fence = ""  # the mark of the code block
        self._is_code = False  # whether the block is not said
        self._hiding_tag = ""
        self._json: list[str] = []  # the brackets that the JSON has to close
        self._json_size = 0
        self._in_string = self._is_escaped = False

    def feed(self, text: str) -> list[SpokenPart]:
        """Return the parts that this text completes.

        Args:
            text: The next characters.
        """
        parts = []
        for at in range(0, len(text), _READ_AT_ONCE):
            parts += self._read(text[at : at + _READ_AT_ONCE], is_end=False)
        return parts

    def flush(self) -> list[SpokenPart]:
        return self._read("", is_end=True)

    def _read(self, text: str, *, is_end: bool) -> list[SpokenPart]:
        text, self._delayed = self._delayed + text, ""
        parts: list[SpokenPart] = []
        at = 0
        while at < len(text):
            step = self._step(text[at:] if at else text, is_end=is_end)
            if step is None and len(text) - at > _LONGEST_DELAYED:
                step = self._step(text[at:], is_end=True)
            if step is None:
                self._delayed = text[at:]
                break
            size, spoken = step
            self._pass(parts, text[at : at + size], spoken)
            at += size
        return parts

    def _pass(self, parts: list[SpokenPart], written: str, spoken: str) -> None:
        last = parts[-1] if parts else None
        if last is not None and written == spoken and last.written == last.spoken:
            parts[-1] = SpokenPart(last.written + written, last.spoken + spoken)
        elif last is not None and not spoken and not last.spoken:
            parts[-1] = SpokenPart(last.written + written, "")
        else:
            parts.append(SpokenPart(written, spoken))
        if written != "\\" or spoken:  # behind a backslash, a mark stands where that stood
            self._before = written[-1]
        if spoken and not spoken.isspace():
            self._spoken_before = spoken.rstrip()[-1]
        if written[-1] == "\n":
            self._is_line_start, self._in_row = True, False
            self._brackets.clear()

    # --- one step: how many characters, and what is said for them; None while that is not known ---

    def _step(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        if self._is_code:
            return self._step_in_code(text, is_end=is_end)
        if self._json:
            return self._step_in_json(text)
        if self._hiding_tag:
            return self._step_in_tag(text, is_end=is_end)
        if self._in_target:
            end = re.search(r"\)|(?=\s)", text)
            self._in_target = end is None
            if end is None or end.end():
                return (len(text) if end is None else end.end()), ""
        if self._is_line_start:
            step = self._step_at_line_start(text, is_end=is_end)
            if step is None or step[0]:
                return step
            self._is_line_start = False
        if self._in_address:
            return self._step_in_address(text, is_end=is_end)
        if self._in_row:
            return self._step_in_row(text, is_end=is_end)
        return self._step_inline(text, is_end=is_end)

    def _step_in_row(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        cells = _CELLS.match(text)
        if _MAY_BE_CELLS.fullmatch(text) and not is_end:
            return None
        if cells is not None:
            is_last = cells.end() == len(text) or text[cells.end()] == "\n"
            return cells.end(), "" if is_last else ", "
        if text[0] in " \t":
            return 1, text[0]
        return self._step_inline(text, is_end=is_end)

    def _step_at_line_start(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        """Return the step; (0, "") if no mark stands here."""
        if not is_end and _LINE_MAY_BEGIN.fullmatch(text):
            return None
        fence = _FENCE.match(text)
        if fence is not None:
            return self._pass_fence(fence)
        rule = _RULE.match(text)
        if rule is not None and rule.group().strip():
            return rule.end(), ""
        if _JSON.match(text):
            self._json_size, self._in_string = 0, False
            return self._step_in_json(text)
        mark = _LINE_MARK.match(text)
        if mark is None:
            blank = re.match(r"[ \t]+", text)
            return (0, "") if blank is None else (blank.end(), blank.group())
        self._in_row = mark["row"] is not None
        self._is_line_start = mark["quote"] is not None
        return mark.end(), ""

    def _pass_fence(self, fence: re.Match[str]) -> tuple[int, str]:
        if self._fence:  # the end of a block of words
            self._fence = ""
        else:
            self._fence = fence["mark"]
            self._is_code = fence["language"].lower() not in _PLAIN_FENCES
        self._is_line_start = False
        return fence.end(), ""

    def _step_in_code(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        if self._is_line_start:
            mark = self._fence[0] * 3
            if not is_end and re.fullmatch(rf"[ \t]*{mark[0]}*[ \t]*", text):
                return None
            end = re.match(rf"[ \t]*{mark}+[ \t]*", text)
            if end is not None:
                self._fence, self._is_code, self._is_line_start = "", False, False
                return end.end(), ""
            self._is_line_start = False
        line = text.find("\n")
        return (len(text) if line < 0 else line + 1), ""

    def _step_in_json(self, text: str) -> tuple[int, str]:
        for at, character in enumerate(text):
            self._json_size += 1
            if self._is_escaped:
                self._is_escaped = False
            elif self._in_string:
                self._is_escaped = character == "\\"
                self._in_string = character != '"'
            elif character == '"':
                self._in_string = True
            elif character in _JSON_PAIRS:
                self._json.append(_JSON_PAIRS[character])
            elif self._json and character == self._json[-1]:
                self._json.pop()
                if not self._json:
                    self._is_line_start = False
                    return at + 1, ""
            if self._json_size > _LONGEST_JSON:
                self._json.clear()
                return at + 1, ""
        return len(text), ""

    def _step_in_tag(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        end = f"</{self._hiding_tag}"
        at = text.lower().find(end)
        if at >= 0:
            self._hiding_tag = ""
            if at:
                return at, ""
            return self._step_inline(text, is_end=is_end)
        mark = text.rfind("<")
        if mark >= 0 and not is_end and end.startswith(text[mark:].lower()):
            return (mark, "") if mark else None
        return len(text), ""

    def _step_in_address(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        end = _ADDRESS_ENDS.search(text)
        size = len(text) if end is None else end.start()
        if self._brackets and ")" in text[:size]:
            size = min(size, text.index(")"))
        if end is not None or not size:
            self._in_address = False
        return (size, text[:size]) if size else self._step_inline(text, is_end=is_end)

    def _step_inline(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        found = _SPECIAL.search(text)
        start = len(text) if found is None else found.start()
        if self._in_row:
            blank = re.search(r"[ \t]", text)
            start = start if blank is None else min(start, blank.start())
        if start:
            if any(character.isspace() for character in text[:start]):
                self._in_autolink = False
            return start, text[:start]
        return self._step_special(text, is_end=is_end)

    def _step_special(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        character = text[0]
        if character == "\n":
            return 1, "\n"
        if character == "\\":
            return self._step_escape(text, is_end=is_end)
        if character in "*_~`=#" and not (character == "=" and text[1:2] in (")", "(", ">", "-")):
            return self._step_run(text, is_end=is_end)
        if character == "!":
            if text == "!" and not is_end:
                return None
            return (2, self._open_bracket()) if text[1:2] == "[" else (1, "!")
        if character in "[]【":
            return self._step_bracket(text, is_end=is_end)
        if character in "<>":
            return self._step_angle(text, is_end=is_end)
        if character == "&":
            return self._step_entity(text, is_end=is_end)
        if character in ":;-=":
            return self._step_smile_or_arrow(text, is_end=is_end)
        if character in "{}":
            return 1, ""
        if character == "|":
            return 1, "" if self._before in "\n" else ","
        return self._step_symbol(text)

    def _step_escape(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        if text == "\\" and not is_end:
            return None
        following = text[1:2]
        is_escape = bool(following) and following.isascii() and not following.isalnum()
        return 1, "" if is_escape else "\\"

    def _step_run(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        """Judge a run of one mark, such as "**", by the characters beside it."""
        run = _RUN.match(text)
        assert run is not None
        size = run.end()
        if not is_end and (size == len(text) or (text[size:].isspace() and "\n" not in text)):
            return None
        mark, before, after = text[0], self._before, text[size : size + 1] or "\n"
        inside = before.isalnum() and after.isalnum()
        apart = before.isspace() and after.isspace()
        said = run.group()
        if mark == "*":
            number = before.isdigit() or after.isdigit()
            beyond = text[size:].lstrip(" ")[:1]
            said_before = self._spoken_before
            factor = apart and (said_before.isdigit() or said_before == ")" or beyond.isdigit())
            keeps = (inside and number) or (size == 1 and factor)
        elif mark == "_":
            keeps = inside
        elif mark == "~":
            keeps = size == 1 and (after.isdigit() or inside)
        elif mark == "`":
            keeps, said = inside and size == 1, "'"
        elif mark == "=":
            keeps = size != 2 or inside or apart
        else:  # hashes
            keeps = after.isdigit() or before.isalnum()
        return size, said if keeps else ""

    def _open_bracket(self) -> str:
        self._brackets.append(self._before == "\n")
        return " " if self._spoken_before.isalnum() and self._before.isalnum() else ""

    def _step_bracket(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        if text[0] != "]":
            citation = _CITATION.match(text)
            behind = not self._before.isspace() and self._before not in "([{" and self._before
            if citation is not None and (behind or text[1] == "^"):
                return citation.end(), ""
            if _MAY_BE_CITATION.fullmatch(text) and not is_end and (behind or len(text) == 1):
                return None
            return (1, "【") if text[0] == "【" else (1, self._open_bracket())
        if not self._brackets:
            return 1, " " if text[1:2].isalnum() else ""
        if len(text) == 1 and not is_end:
            return None
        for pattern, may_be in ((_TARGET, _MAY_BE_TARGET), (_REFERENCE, _MAY_BE_REFERENCE)):
            found = pattern.match(text, 1)
            if found is not None:
                self._brackets.pop()
                return found.end(), ""
            if text[1:2] == pattern.pattern[1] and may_be.fullmatch(text, 1) and not is_end:
                if len(text) <= _LONGEST_TARGET:
                    return None
                self._brackets.pop()
                self._in_target = True
                return len(text), ""
        self._brackets.pop()
        return 1, " " if text[1:2].isalnum() else ""

    def _step_angle(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        if text[0] == ">":
            is_end_of_link, self._in_autolink = self._in_autolink, False
            return 1, "" if is_end_of_link or not self._before.isspace() else ">"
        emoticon = _EMOTICON.match(text)
        if emoticon is not None and (emoticon.end() < len(text) or is_end):
            return emoticon.end(), ""
        tag = _TAG.match(text)
        if tag is not None:
            name = (tag["name"] or "").lower()
            if name in _TAG_HIDES and not tag["slash"] and not tag.group().endswith("/>"):
                self._hiding_tag = name
            return tag.end(), "\n" if name in _TAG_BREAKS else ""
        if _AUTOLINK.match(text):
            self._in_autolink = True
            return 1, ""
        may_be = _MAY_BE_TAG.fullmatch(text) or _MAY_BE_AUTOLINK.fullmatch(text)
        if not is_end and (may_be or text == "<3"):
            return None
        return 1, "<" if text[1:2].isspace() or text[1:2].isdigit() else " "

    def _step_entity(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        entity = _ENTITY.match(text)
        if entity is not None:
            said = html.unescape(entity.group())
            is_word = said == "&" or not (said == "\xa0" or _SPECIAL.search(said))
            return entity.end(), said if is_word else " "
        if not is_end and _MAY_BE_ENTITY.fullmatch(text):
            return None
        return 1, "&"

    def _step_smile_or_arrow(self, text: str, *, is_end: bool) -> tuple[int, str] | None:
        if text.startswith("://") and self._before.isalpha():
            self._in_address = True
            return 3, "://"
        arrow = _ARROW.match(text)
        if arrow is not None:
            return arrow.end(), ","
        starts = not self._before.isalnum()
        smile = _EMOTICON.match(text) if starts else None
        if smile is not None and (smile.end() < len(text) or is_end):
            return smile.end(), ""
        code = _SHORTCODE.match(text) if starts else None
        if code is not None and (code.end() < len(text) or is_end):
            return code.end(), ""
        if not is_end and (
            text in (":", ":/", "-", "--", "=")
            or (starts and (_MAY_BE_EMOTICON.fullmatch(text) or _MAY_BE_SHORTCODE.fullmatch(text)))
        ):
            return None
        return 1, text[0]

    def _step_symbol(self, text: str) -> tuple[int, str]:
        emoji = _EMOJI.match(text)
        if emoji is not None:
            return emoji.end(), ""
        character = text[0]
        if character == "\u200d" and (_EMOJI.match(self._before) or self._before == "\ufe0f"):
            return 1, ""  # it joins two emoji that came apart
        if character in _SILENT_CHARACTERS or unicodedata.category(character) in ("Cc", "Cs", "Co"):
            return 1, ""
        if "\u2190" <= character <= "\u21ff":
            return 1, ","
        return 1, character

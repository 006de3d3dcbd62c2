"""Finds what models write into their text although it is not for the caller.

Rules:
1. The pieces, joined, are the text; no character is lost or changed.
2. A mark may be split anywhere between two texts. Only the beginning of a known mark is delayed.
3. A thought ends with its own mark, or with the answer: half a thought is nobody's answer.
4. Behind a quote or a backtick a mark is quoted, and so it is text.
"""

# ruff: noqa: RUF001 (vendors write marks with characters of other scripts)

from __future__ import annotations

import re
from functools import cache
from typing import Literal

HiddenKind = Literal["", "thinking", "tool_call", "token"]
"""What a piece is: empty for text that the caller hears; ``token`` is a control token."""

_THOUGHTS = frozenset(
    (
        *("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad"),
        *("analysis", "inner_monologue", "inner_thoughts", "antthinking"),
    )
)
_CALLS = frozenset(
    (
        *("tool_call", "tool_calls", "toolcall", "function_call", "function_calls", "function"),
        *("invoke", "tool_use", "tool_code", "tool_response", "tool_result", "tool_results"),
        *("function_results", "tools"),
    )
)
_TOKENS = frozenset(
    (
        *("s", "pad", "unk", "eos", "bos", "sep", "cls", "start_of_turn", "end_of_turn"),
        *("eot_id", "eom_id", "begin_of_text", "end_of_text", "start_of_image", "end_of_image"),
    )
)
_BRACKETED: dict[str, HiddenKind] = {
    "THINK": "thinking",
    "TOOL_CALLS": "tool_call",
    "TOOL_CALL": "tool_call",
    "TOOL_RESULTS": "tool_call",
    "AVAILABLE_TOOLS": "tool_call",
    "ARGS": "token",
    "INST": "token",
    "BOS": "token",
    "EOS": "token",
    "PAD": "token",
    "UNK": "token",
}
"""Marks of Mistral's models."""
_UNCLOSED = ("TOOL_CALLS", "TOOL_CALL")
"""Marks behind which the rest of the answer is a tool call."""
_NAMES = _THOUGHTS | _CALLS | _TOKENS

_ROLE_FOLLOWS = frozenset(("im_start", "start", "start_header_id", "start_of_turn", "channel"))
"""Tokens behind which the model names who speaks, or on which channel."""
_ROLES = ("assistant", "model", "user", "system", "tool", "developer")


# Compiled at the first text that may hold a mark: that takes longer than importing most modules.
@cache
def _mark() -> re.Pattern[str]:
    return re.compile(
        r"<unused(?P<unused>\d{1,4})>"
        r"|<(?P<slash>/?)(?P<name>[a-z][\w.-]*(?::[\w.-]+)?)(?:[\s=][^<>]{0,200})?/?>"
        r"|<[|｜](?P<token>[^|｜<>\s]{1,60})[|｜]>"
        r"|◁(?P<slash2>/?)(?P<name2>[a-z]+)▷"
        r"|\[(?P<slash3>/?)(?P<bracketed>[a-z_]{2,20})\]"
        r"|<</?sys>>|<0x[0-9a-f]{2}>",
        re.IGNORECASE,
    )


@cache
def _may_begin() -> re.Pattern[str]:
    return re.compile(
        r"</?(?P<name>[a-z][\w.:-]*)?/?|</?(?P<whole>[a-z][\w.-]*(?::[\w.-]+)?)[\s=][^<>]{0,200}"
        r"|<[|｜](?:[^|｜<>\s]{1,60}[|｜]?)?|◁/?[a-z]{0,20}▷?|\[/?(?P<bracketed>[a-z_]{0,20})"
        r"|<</?s?y?s?>?|<0x?[0-9a-f]{0,2}|<unused\d{0,4}",
        re.IGNORECASE,
    )


@cache
def _role() -> re.Pattern[str]:
    return re.compile(rf"\s*(?P<role>{'|'.join(_ROLES)})\b[ \t]*\n?", re.IGNORECASE)


_START = re.compile(r"[<\[◁]")


class HiddenText:
    """Tells the text of one answer from the thoughts, tool calls and tokens that are written in it.

    Known are the marks of the models of DeepSeek, Qwen, Mistral, Kimi, Llama, Gemma, Phi, Cohere,
    OpenAI's open ones, and Anthropic's old prompts.
    """

    def __init__(self) -> None:
        self._delayed = ""
        self._before = ""  # the last visible character
        self._inside: tuple[HiddenKind, str] | None = None  # what is hidden, and what ends it
        self._role_follows = False

    def feed(self, text: str) -> list[tuple[str, HiddenKind]]:
        """Return the next pieces of the answer, and of what kind each is.

        Args:
            text: The next characters, at whatever place they are split.
        """
        waits = self._delayed or self._inside or self._role_follows or not self._before
        if not waits and text and not _START.search(text):  # nearly every text
            self._before = text[-1]
            return [(text, "")]
        return self._read(text, is_end=False)

    def flush(self) -> list[tuple[str, HiddenKind]]:
        """Return what was delayed, because the answer is over."""
        return self._read("", is_end=True)

    def _read(self, text: str, *, is_end: bool) -> list[tuple[str, HiddenKind]]:
        text, self._delayed = self._delayed + text, ""
        pieces: list[tuple[str, HiddenKind]] = []
        at = 0
        while at < len(text):
            size = self._next(text, at, pieces, is_end=is_end)
            if not size:
                self._delayed = text[at:]
                break
            at += size
        return pieces

    def _next(
        self, text: str, at: int, pieces: list[tuple[str, HiddenKind]], *, is_end: bool
    ) -> int:
        """Add the next piece and return its length; 0 while it is not known."""
        if self._role_follows:
            size = self._read_role(text, at, is_end=is_end)
            if size is None:
                return 0
            self._role_follows = False
            if size:
                self._add(pieces, text[at : at + size], "token")
                return size
        found = _START.search(text, at)
        start = len(text) if found is None else found.start()
        if start > at:
            self._add(pieces, text[at:start], self._kind)
            return start - at
        rest = text[at:]
        mark = _mark().match(rest)
        if mark is not None and self._is_known(mark):
            self._add(pieces, mark.group(), self._pass(mark))
            return mark.end()
        if mark is None and not is_end and self._may_begin(rest):
            return 0
        self._add(pieces, rest[0], self._kind)
        return 1

    @property
    def _kind(self) -> HiddenKind:
        return "" if self._inside is None else self._inside[0]

    def _add(self, pieces: list[tuple[str, HiddenKind]], text: str, kind: HiddenKind) -> None:
        if not kind and not self._before:  # white space behind a thought is no beginning
            blank = text[: len(text) - len(text.lstrip())]
            if blank:
                self._add(pieces, blank, "token")
                text = text[len(blank) :]
        if not text:
            return
        if not kind:
            self._before = text[-1]
        if pieces and pieces[-1][1] == kind:
            pieces[-1] = (pieces[-1][0] + text, kind)
        else:
            pieces.append((text, kind))

    def _is_quoted(self) -> bool:
        return self._inside is None and self._before in ("`", '"', "'", "“", "‘", "«")

    def _is_known(self, mark: re.Match[str]) -> bool:
        if self._is_quoted():
            return False
        if mark["bracketed"] is not None:
            return mark["bracketed"] in _BRACKETED
        name = mark["name"] or mark["name2"]
        return name is None or _plain(name) in _NAMES

    def _may_begin(self, rest: str) -> bool:
        begun = _may_begin().fullmatch(rest)
        if begun is None or self._is_quoted():
            return False
        if begun["whole"]:
            return _plain(begun["whole"]) in _NAMES
        if begun["bracketed"]:
            return any(name.startswith(begun["bracketed"]) for name in _BRACKETED)
        if begun["name"]:
            name = begun["name"].lower()
            parts = name, _plain(name)
            is_known = any(known.startswith(part) for known in _NAMES for part in parts)
            is_numbered = re.fullmatch(r"unused\d{0,4}", name) is not None
            prefixes = "antml:", "seed:", "unused"
            return is_known or is_numbered or any(each.startswith(name) for each in prefixes)
        return True

    def _pass(self, mark: re.Match[str]) -> HiddenKind:
        """Go over a mark, and return what kind of piece it is itself."""
        kind, name, is_end = _meaning(mark)
        names_role = name in _ROLE_FOLLOWS and not is_end
        if self._inside is None:
            if names_role:
                self._role_follows = True
            elif kind in ("thinking", "tool_call") and not is_end:
                self._inside = kind, ("" if name in _UNCLOSED else name)
            return kind
        inside, ends_with = self._inside
        ends = is_end and (name == ends_with or kind == inside == "thinking")
        if ends or (names_role and ends_with in ("role", "channel")):
            self._inside = None
            self._role_follows = names_role
        return inside

    def _read_role(self, text: str, at: int, *, is_end: bool) -> int | None:
        """Return how long the name of a role or channel is; ``None`` while it is not known."""
        rest = text[at:]
        channel = re.match(r"\s*(analysis|commentary|final)\b([^<]{0,80})", rest)
        if channel is not None:
            if channel.end() == len(rest) and not is_end:
                return None
            if channel[1] != "final":
                is_call = "to=" in channel[2]
                self._inside = ("tool_call" if is_call else "thinking"), "channel"
            return channel.end()
        role = _role().match(rest)
        if role is not None and (role.end() < len(rest) or rest.endswith("\n") or is_end):
            if role["role"].lower() not in ("assistant", "model"):
                self._inside = "token", "role"  # the model writes what others say
            return role.end()
        word = rest.strip().lower()
        names = (*_ROLES, "analysis", "commentary", "final")
        if not is_end and any(name.startswith(word) for name in names):
            return None
        return 0


def _plain(name: str) -> str:
    """Return a name without its namespace."""
    return name.lower().rpartition(":")[2]


def _meaning(mark: re.Match[str]) -> tuple[HiddenKind, str, bool]:
    """Return of what kind a mark is, its name, and whether it ends something."""
    if mark["bracketed"] is not None:
        return _BRACKETED[mark["bracketed"]], mark["bracketed"], bool(mark["slash3"])
    if mark["unused"] is not None:  # Gemma's: 94 begins a thought, 95 ends it
        kind: HiddenKind = "thinking" if mark["unused"] in ("94", "95") else "token"
        return kind, "unused", mark["unused"] == "95"
    if mark["token"] is not None:
        return _meaning_of_token(mark["token"].lower().replace("▁", "_"))
    name = mark["name"] or mark["name2"]
    if name is None:
        return "token", "", False
    name = _plain(name)
    is_end = bool(mark["slash"] or mark["slash2"])
    if mark.group().endswith("/>"):
        is_end = True  # an empty element
    if name in _THOUGHTS:
        return "thinking", name, is_end
    return ("tool_call" if name in _CALLS else "token"), name, is_end


def _meaning_of_token(token: str) -> tuple[HiddenKind, str, bool]:
    name = re.sub(r"(?:^|_)(?:begin|start|end)(?:_of)?(?=_|$)|/", "", token).strip("_")
    is_end = token.startswith("/") or re.search(r"(?:^|_)end(?:_|$)", token) is not None
    if re.search(r"think|thought|reason", token):
        return "thinking", name, is_end
    if re.search(r"tool|action|function|plugin|python_tag", token):
        return "tool_call", name, is_end
    if token in ("return", "call", "end", "eom_id", "eot_id"):
        return "token", "channel" if token in ("return", "call", "end") else "python_tag", True
    return "token", token, False

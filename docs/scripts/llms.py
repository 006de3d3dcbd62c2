"""Writes docs/llms.txt: what bargein is and where each page is, for language models.

Run ``python -m docs.scripts.llms`` after a change; a test compares the file with what this program
would write.  The format is that of https://llmstxt.org.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "llms.txt"

SUMMARY = """# bargein

> Voice agents you can interrupt, in Python on trio.

Import everything from `bargein` and its submodules (`bargein.events`, `bargein.testing`, ...).
Do not import from `bargein.bridge` or `bargein.nodes`; those are private.
Everything runs on trio: use `trio.sleep`, nurseries and cancel scopes, never asyncio.
A cut arrives as `trio.Cancelled`: never swallow it.
Test agents in virtual time with `bargein.testing.open_call`.
"""


def reference() -> str:
    """Return the text of the file."""
    parts = [SUMMARY]
    for title, pages in order().items():
        parts.append(f"\n## {title}\n\n")
        for page in pages:
            heading, summary = _head((ROOT / "docs" / page).read_text())
            parts.append(f"- [{heading}]({page}): {summary}\n")
    return "".join(parts)


def order() -> dict[str, list[str]]:
    """Return the pages of docs/ by the sections of mkdocs.yml, in the order of reading."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2].splitlines():
        if section := re.fullmatch(r"  - ([^:]+):", line):
            title = section[1]
        elif (page := re.fullmatch(r"      - [^:]+: (\S+\.md)", line)) and is_page(page[1]):
            found.setdefault(title, []).append(page[1])
    return found


def is_page(name: str) -> bool:
    """Whether a page of the site is a file of docs/; others are made when the site is built."""
    return (ROOT / "docs" / name).is_file()


def _head(page: str) -> tuple[str, str]:
    """Return the title of a page and its first sentence, without markup."""
    heading, _, text = page.removeprefix("# ").partition("\n")
    first = next(line for line in text.splitlines() if re.match(r"[A-Z]|`\w|bargein\b", line))
    first = re.sub(":$", ".", first)  # a program follows it
    return heading, re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first)


if __name__ == "__main__":
    PAGE.write_text(reference())

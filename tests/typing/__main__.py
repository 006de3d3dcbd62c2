"""What type checkers say to users: nothing to what is right, and what is wrong, where it is.

What is looked at, by mypy in strict mode and by pyright in the mode of pyproject.toml:
1. ``right/`` has no error.
2. ``wrong/`` has each error whose rule is written above its line, and no other; the rules whose
   names begin with ``report`` are pyright's.
3. The programs of the README and of docs/ have no error, as they stand there.
4. The package and the examples have none of pyright's; ``mypy`` alone looks at them too.

Run it with ``python -m tests.typing``, from the top of the checkout.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRONG = Path("tests/typing/wrong")
PAGES = ROOT / "build" / "typing"
"""Where the programs of the pages go; pyproject.toml names it to pyright."""

UNTYPED = '# mypy: disable-error-code="no-untyped-def, no-untyped-call"'
"""A reader's program need not be annotated; all else of the strict mode holds."""

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w/]+\.py)\n")
_MYPY = re.compile(r"(?P<file>[^:\n]+):(?P<line>\d+): error: (?P<text>.*?)  \[(?P<rule>[\w-]+)\]")
_EXPECTED = re.compile(r" *# wrong: (.*)")

Error = tuple[str, int, str]
"""The file, the line, and the rule."""


def write_pages() -> list[str]:
    """Write the programs of each page to a file, each line in its place; return their names."""
    PAGES.mkdir(parents=True, exist_ok=True)
    for old in PAGES.glob("*.py"):
        old.unlink()
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text("utf-8")
        lines = [""] * (text.count("\n") + 1)
        for match in _BLOCK.finditer(text):
            source = match[1].splitlines()
            first = text.count("\n", 0, match.start(1))
            lines[first : first + len(source)] = source
            if file := _FILE.match(match[1]):  # the reader's own, which other blocks import
                (PAGES / file[1]).write_text(f"{UNTYPED}\n{match[1]}", "utf-8")
        lines[0] = UNTYPED  # in place of the page's title
        name = f"{page.stem.lower().replace('-', '_')}_page.py"
        (PAGES / name).write_text("\n".join(lines) + "\n", "utf-8")
    return sorted(str(file.relative_to(ROOT)) for file in PAGES.glob("*.py"))


def expected() -> Iterator[Error]:
    """Yield the errors that are written down in ``wrong/``."""
    for path in sorted((ROOT / WRONG).glob("*.py")):
        for line, text in enumerate(path.read_text("utf-8").splitlines(), 1):
            if match := _EXPECTED.fullmatch(text):
                for rule in match[1].split(", "):
                    yield str(WRONG / path.name), line + 1, rule


def of_mypy(output: str) -> Iterator[tuple[Error, str]]:
    """Yield what mypy has found, each with its text."""
    for match in _MYPY.finditer(output):
        yield (match["file"], int(match["line"]), match["rule"]), match["text"]


def of_pyright(output: str) -> Iterator[tuple[Error, str]]:
    """Yield what pyright has found, each with its text; warnings too."""
    for found in json.loads(output)["generalDiagnostics"]:
        file = str(Path(found["file"]).relative_to(ROOT))
        line = found["range"]["start"]["line"] + 1
        yield (file, line, found.get("rule", "syntax")), found["message"]


def differences(wanted: Iterable[Error], found: Iterable[tuple[Error, str]]) -> list[str]:
    """Return a line for each error that nobody expects, and for each that is missing."""
    texts = dict(found)
    missing = set(wanted)
    lines = [
        f"{file}:{line}: {rule}: {text}"
        for (file, line, rule), text in sorted(texts.items())
        if (file, line, rule) not in missing
    ]
    missing -= set(texts)
    return lines + [
        f"{file}:{line}: no {rule}, which is expected" for file, line, rule in sorted(missing)
    ]


def main() -> int:
    """Run both; return 0 if all is as it should be."""
    pages = write_pages()
    scripts = Path(sysconfig.get_path("scripts"))
    users = ["tests/typing/right", str(WRONG), *pages]
    commands = (
        [str(scripts / "basedpyright"), "--outputjson"],
        [sys.executable, "-m", "mypy", "--no-pretty", "--strict", *users],
    )
    pyright, mypy = (
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for command in commands
    )
    mypy_said, _ = mypy.communicate()
    pyright_said, _ = pyright.communicate()
    if mypy.returncode not in (0, 1) or pyright.returncode not in (0, 1):
        print(mypy_said, pyright_said, sep="\n")
        return 2
    wanted = list(expected())
    lines = differences(wanted, (*of_mypy(mypy_said), *of_pyright(pyright_said)))
    for line in lines:
        print(line)
    print(f"{len(wanted)} mistakes and {len(pages)} programs of pages: {len(lines)} differences")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

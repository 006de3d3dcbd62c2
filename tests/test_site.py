"""The site that `make docs` builds: its links lead to files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath

import pytest

from docs.scripts import llms

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.proof

_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def links(text: str) -> Iterator[str]:
    """Yield the relative links of a Markdown text."""
    yield from (link for link in _LINK.findall(_BLOCK.sub("", text)) if "://" not in link)


def test_every_link_of_llms_txt_leads_to_a_file(site: Path) -> None:
    """A language model that reads llms.txt finds the Markdown of each page beside it."""
    listed = list(links((site / "llms.txt").read_text()))
    assert len(listed) == sum(map(len, llms.order().values()))
    for link in listed:
        assert (site / link).read_text().startswith("# "), link


def test_every_link_of_the_markdown_leads_to_a_file(site: Path) -> None:
    """The Markdown beside a page has the links of the site, and not those of the repository."""
    pages = [page.relative_to(site) for page in site.glob("*.md")]
    assert {"index.md", "control.md", "CHANGELOG.md"} <= set(map(str, pages))
    for page in pages:
        for link in links((site / page).read_text()):
            place = normpath(str(page.parent / link))
            assert (site / place).is_file(), f"{page} links to {link!r}"

"""The site that `make docs` builds: its links lead to files, and it loads nothing of others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath

import pytest

from docs.scripts import llms
from docs.scripts.site import facades
from tests.test_api_reference import exported_classes, public_methods

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.proof

_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
_LOADED_BY_CSS = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LOADS = {"audio": "src", "embed": "src", "iframe": "src", "img": "src", "link": "href"}
LOADS |= {"object": "data", "script": "src", "source": "src", "video": "src"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


class Page(HTMLParser):
    """What a page of the site loads, and the classes of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.classes.update(given.get("class", "").split())
        if tag != "link" or given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given.get(LOADS.get(tag, ""), ""))


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


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    """No page and no style sheet names a script, a style or a picture of another host."""
    pages = {page: Page(page.read_text()) for page in site.rglob("*.html")}
    assert len(pages) > 50
    for path, page in pages.items():
        assert [each for each in page.loaded if re.match(r"(?:\w+:)?//", each)] == [], path
    for path in site.rglob("*.css"):
        assert _LOADED_BY_CSS.findall(path.read_text()) == [], path


def test_no_page_has_what_the_theme_draws_with_a_script_of_another_host(site: Path) -> None:
    """The theme loads Mermaid from another host as soon as a page has a diagram of it."""
    for path in site.rglob("*.html"):
        assert "mermaid" not in Page(path.read_text()).classes, path


def inventory(site: Path) -> set[str]:
    """Return the names of the reference, from the inventory that other sites link by."""
    head, _, body = (site / "objects.inv").read_bytes().partition(b"# The remainder")
    assert head
    lines = zlib.decompress(body.split(b"\n", 1)[1]).decode().splitlines()
    return {line.split(" ")[0] for line in lines}


def test_the_reference_has_every_public_class_with_all_its_methods(site: Path) -> None:
    """The inventory names each exported class, and each of its public methods."""
    found = inventory(site)
    known = {"Call.say", "App.open_call", "Handle.redirect", "routes.Route.interrupt_on"}
    assert {f"bargein.{name}" for name in known} <= found
    wanted = {path for path, _ in exported_classes()}
    wanted |= {f"{path}.{name}" for path, cls in exported_classes() for name in public_methods(cls)}
    assert sorted(wanted - found) == []
    assert len(wanted) > 1_000


def test_each_public_module_has_a_page(site: Path) -> None:
    """Each façade has a page of the reference, and the navigation of the site leads there."""
    front = (site / "index.html").read_text()
    for name in facades():
        assert (site / "api" / f"{name}.html").is_file()
        assert f'href="api/{name}.html"' in front

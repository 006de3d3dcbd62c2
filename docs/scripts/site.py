"""A hook of mkdocs: adds what lies outside of docs/ to the site.

The README, the changelog, the security policy and the guide for contributors are pages too.  The
front page is docs/index.md, without the lists of the other pages.  Each façade of ``bargein`` gets
a page that mkdocstrings fills from its docstrings.  Files that a page links to, such as the
examples, are copied, so that every link leads somewhere.  The Markdown of each page stands beside
it: llms.txt lists it, for language models.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from posixpath import normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "why.md": "README.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
}
_sources: dict[str, str] = {}  # the Markdown of each page as the site has it, by its path
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def facades() -> dict[str, str]:
    """Return the page of each façade, by its name in ``api/``, and the module that it documents."""
    names = sorted(path.stem for path in (ROOT / "bargein").glob("*.py") if path.stem[0] != "_")
    return {"bargein": "bargein", **{name: f"bargein.{name}" for name in (*names, "routes")}}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that docs/ does not have, and the files that pages link to."""
    for place, source in PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for page, module in facades().items():
        names = "".join(f"        - {name}\n" for name in sorted(import_module(module).__all__))
        text = f"# {module}\n\n::: {module}\n    options:\n      members:\n{names}"
        files.append(File.generated(config, f"api/{page}.md", content=text))
    for name in sorted(linked_files()):
        place = f"files/{name}" + (".txt" if name.endswith(".md") else "")
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    if page.file.src_uri.startswith("api/") and page.file.src_uri != "api/bargein.md":
        page.meta["search"] = {"boost": 0.4}  # guides first, and `call.say` before `CallStarted`
    source = PAGES.get(page.file.src_uri)
    folder = "docs" if source is None else "."
    if page.file.src_uri.startswith("api/"):
        return markdown  # it only names a module

    def rewritten(match: re.Match[str]) -> str:
        target = match[2]
        if "://" not in target:
            target = _place_of(normpath(f"{folder}/{target}"))
        return f"{match[1]}{target}{match[3] or ''}{match[4]}"

    text = _LINK.sub(rewritten, markdown)
    _sources[page.file.src_uri] = text
    return text


def on_post_build(config: MkDocsConfig) -> None:
    """Write the Markdown of each page beside it."""
    for name, text in _sources.items():
        (Path(config.site_dir) / name).write_text(text, encoding="utf-8")


def linked_files() -> set[str]:
    """Return the files that pages link to and that are no pages, as paths of the repository."""
    found = set()
    for page in [*(ROOT / source for source in PAGES.values()), *(ROOT / "docs").glob("*.md")]:
        folder = page.parent.relative_to(ROOT)
        for match in _LINK.finditer(page.read_text()):
            name = normpath(f"{folder}/{match[2]}")
            outside = not name.startswith("docs/") and name not in PAGES.values()
            if "://" not in match[2] and outside and (ROOT / name).is_file():
                found.add(name)
    return found


def _place_of(name: str) -> str:
    """Return where a file of the repository stands in the site."""
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    page = next((place for place, source in PAGES.items() if source == name), None)
    return page or f"files/{name}" + (".txt" if name.endswith(".md") else "")

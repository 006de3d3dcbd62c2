"""Writes the bill of materials of a wheel: every locked package that it or an extra brings.

``python -m requirements.sbom FOLDER`` writes ``FOLDER/bargein-VERSION.cdx.json``, in CycloneDX 1.6.
The same locks give the same bytes.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .lock import BUILD, CORE, ROOT, requirements
from .pins import ENVIRONMENTS, Pin, asked_by, licence_of, pins

NOT_FOR_USERS = {BUILD, "core-test", "test", "docs", "dev"}


def bill() -> dict[str, Any]:
    """Return the bill of materials.

    Raises:
        PackageNotFoundError: A package is not installed here, so its licence is unknown.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    asked = {lock: lines for lock, lines in requirements().items() if lock not in NOT_FOR_USERS}
    brought: dict[tuple[str, str], tuple[Pin, list[str]]] = {}
    for lock in asked:
        for pin in pins(lock):
            if any(map(pin.is_for, ENVIRONMENTS)):
                brought.setdefault((pin.name, pin.version), (pin, []))[1].append(lock)
    refs: dict[str, list[str]] = {}
    for one, release in sorted(brought):
        refs.setdefault(one, []).append(_purl(one, release))
    direct = [Requirement(line) for lines in asked.values() for line in lines]
    graph = {_purl(name, version): _on(direct, refs)}
    graph |= {ref: _on(asked_by(one, {}), refs) for one, them in refs.items() for ref in them}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _about(name, version, project["license"])},
        "components": [_component(*brought[one]) for one in sorted(brought)],
        "dependencies": [{"ref": ref, "dependsOn": on} for ref, on in graph.items()],
    }


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _on(lines: Iterable[Requirement], refs: dict[str, list[str]]) -> list[str]:
    names = {canonicalize_name(line.name) for line in lines}
    return sorted(ref for name in names & refs.keys() for ref in refs[name])


def _about(name: str, version: str, licence: str) -> dict[str, Any]:
    purl = _purl(name, version)
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "licenses": [{"expression": licence}],
        "purl": purl,
    }


def _component(pin: Pin, locks: list[str]) -> dict[str, Any]:
    extras = " ".join(sorted(set(locks) - {CORE}))
    return {
        **_about(pin.name, pin.version, licence_of(pin.name)),
        "scope": "required" if CORE in locks else "optional",
        "hashes": [{"alg": "SHA-256", "content": one} for one in pin.hashes],
        "properties": [{"name": "bargein:extras", "value": extras}],
    }


def main(folder: str) -> None:
    """Write the bill of materials into a folder."""
    found = bill()
    version = found["metadata"]["component"]["version"]
    text = json.dumps(found, indent=1) + "\n"
    (Path(folder) / f"bargein-{version}.cdx.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

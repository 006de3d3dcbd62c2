"""Reads the locks, and what the installed packages say about themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import cast

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .install import MACHINES, PYTHONS

HERE = Path(__file__).parent

ENVIRONMENTS = [
    {
        "python_version": f"{major}.{minor}",
        "python_full_version": f"{major}.{minor}.9",
        "platform_system": system,
        "sys_platform": system.lower(),
        "platform_machine": machine,
    }
    for major, minor in PYTHONS
    for system, machine in sorted(MACHINES)
]
"""The values of markers on each Python and machine that the locks are for."""

LICENCES = {
    "axe-playwright-python": "MIT AND MPL-2.0",  # axe-core, which it carries, is MPL-2.0
    # Its wheels carry baresip and re (BSD-3-Clause), OpenSSL 1.1.1, and ALSA's library (LGPL).
    "baresip-python": "BSD-2-Clause AND BSD-3-Clause AND OpenSSL AND LGPL-2.1-or-later",
    "espeakng-loader": "MIT AND GPL-3.0-or-later",  # espeak-ng, which it carries, is GPL
    "protobuf": "BSD-3-Clause",
}
"""The licences of packages that name none, or not by its SPDX identifier."""

BY_CLASSIFIER = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


@dataclass(frozen=True, slots=True)
class Pin:
    """One version of one package in a lock.

    Attributes:
        name: The package, in small letters and with hyphens.
        version: The version.
        marker: Where this version is installed, as Python's packaging writes it; ``None`` means
            everywhere.
        hashes: The SHA-256 of each of its files.
    """

    name: str
    version: str
    marker: Marker | None
    hashes: tuple[str, ...]

    def is_for(self, environment: dict[str, str]) -> bool:
        """Whether it is installed in an environment, given as the values that differ from ours."""
        return self.marker is None or self.marker.evaluate(environment)


def pins(lock: str) -> list[Pin]:
    """Return what a lock holds.

    Raises:
        ValueError: A line is neither a comment nor a pinned version with hashes.
    """
    text = (HERE / f"{lock}.txt").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [_pin(lock, line) for line in lines]


def _pin(lock: str, line: str) -> Pin:
    said, *hashes = re.split(r"\s+--hash=sha256:", line.strip())
    if not hashes or not all(re.fullmatch("[0-9a-f]{64}", one) for one in hashes):
        raise ValueError(f"{lock}.txt has a line without hashes: {said!r}")
    requirement = Requirement(said)
    [exact] = requirement.specifier
    if exact.operator != "==" or "*" in exact.version or requirement.url:
        raise ValueError(f"{lock}.txt has a line without one version: {said!r}")
    return Pin(canonicalize_name(requirement.name), exact.version, requirement.marker, (*hashes,))


def needed(requirements: Iterable[str], environment: dict[str, str]) -> set[str]:
    """Return the packages that requirements bring, as far as those installed here say it.

    Args:
        requirements: Requirements as pyproject.toml has them, without extras of ours.
        environment: The values of markers that differ from this machine's.
    """
    found: set[tuple[str, str]] = set()
    ahead = [one for one in map(Requirement, requirements) if is_for(one, environment)]
    while ahead:
        one = ahead.pop()
        name = canonicalize_name(one.name)
        for extra in ("", *one.extras):
            if (name, extra) not in found:
                found.add((name, extra))
                ahead += asked_by(name, {**environment, "extra": extra})
    return {name for name, _ in found}


def asked_by(name: str, environment: dict[str, str]) -> Iterator[Requirement]:
    """Yield what an installed package asks for; nothing if it is not installed.

    Args:
        name: The package.
        environment: The values of markers that differ from this machine's, and the ``extra``.
    """
    try:
        said = requires(name) or []
    except PackageNotFoundError:
        return
    for text in said:
        requirement = Requirement(text)
        if is_for(requirement, environment):
            yield requirement


def is_for(requirement: Requirement, environment: dict[str, str]) -> bool:
    """Whether a requirement holds in an environment."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": "", **environment})


def licence_of(name: str) -> str:
    """Return the SPDX expression of an installed package's licence.

    Raises:
        PackageNotFoundError: It is not installed.
        ValueError: It names none that is known.
    """
    if name in LICENCES:
        return LICENCES[name]
    about = cast(Message, metadata(name))
    if expression := about.get("License-Expression"):
        return str(expression)
    said = (about.get("License") or "").strip()
    if re.fullmatch(r"[\w.]+-[\w.-]+|MIT|ISC|(\S+ (OR|AND) \S+)", said):
        return str(said)
    classifiers = [text.rpartition(" :: ")[2] for text in about.get_all("Classifier") or ()]
    known = [BY_CLASSIFIER[text] for text in classifiers if text in BY_CLASSIFIER]
    if not known:
        raise ValueError(f"{name} says no licence that is known: {said!r}")
    return " OR ".join(known)

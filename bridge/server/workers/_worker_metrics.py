"""Adds the metrics of several workers, in Prometheus' text format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SAMPLE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*(?:\{.*\})?) (\S+)")


def summed(texts: Iterable[str]) -> str:
    """Return the sums of all samples with the same name and labels.

    Args:
        texts: Those of ``Metrics.exposition()``; all of one version.
    """
    families: dict[str, dict[str, float]] = {}
    heads: dict[str, list[str]] = {}
    for text in texts:
        family = ""
        for line in text.splitlines():
            if line.startswith("#"):
                family = line.split(" ", 3)[2]
                head = heads.setdefault(family, [])
                if line not in head:
                    head.append(line)
            elif (sample := _SAMPLE.fullmatch(line)) is not None:
                samples = families.setdefault(family, {})
                samples[sample[1]] = samples.get(sample[1], 0) + float(sample[2])
    return "".join(f"{line}\n" for line in _lines(heads, families))


def counters_of(text: str) -> str:
    """Return a worker's numbers without those that end with it, such as open calls."""
    gauges = {line.split(" ")[2] for line in text.splitlines() if line.endswith(" gauge")}
    return "".join(
        f"{line}\n"
        for line in text.splitlines()
        if (line.split(" ")[2] if line.startswith("#") else re.split(r"[ {]", line)[0])
        not in gauges
    )


def _lines(heads: dict[str, list[str]], families: dict[str, dict[str, float]]) -> Iterator[str]:
    for family, head in heads.items():
        yield from head
        for name, value in families.get(family, {}).items():
            yield f"{name} {value:.17g}"

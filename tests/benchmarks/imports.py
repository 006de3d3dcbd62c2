"""Load 7: the cost of importing what a first agent needs, and ``bargein``'s three packages.

The baseline is the four dependencies. The top modules of pydantic and websockets load names lazily,
so the baseline imports the names that any program with models and a server needs. Modules are
compiled beforehand on both sides, and CPU time is measured, because other processes use the CPU.
"""

from __future__ import annotations

from ._measure import Row, Size, quantile, row_of
from ._process import run_python

FOUR = (
    "import trio, structlog, websockets.server, websockets.client\n"
    "from pydantic import BaseModel, ConfigDict, Field, TypeAdapter\n"
)
FOUR_AT_LEAST = "import trio, structlog, websockets\nfrom pydantic import BaseModel\n"
FIRST_AGENT = "from bargein import App, Call, ChatNode, tool\n"
OURS = "from bargein import bridge, nodes, routes\n"

_METER = """
import time
began_s = time.process_time()
{code}
used_s = time.process_time() - began_s
from tests.benchmarks._process import resident_bytes
print(used_s * 1000, resident_bytes() / 1e6)
"""


def _import(code: str) -> tuple[float, float]:
    ms, mb = run_python("-c", _METER.format(code=code)).split()
    return float(ms), float(mb)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    codes = (FOUR, FOUR_AT_LEAST, FIRST_AGENT, OURS)
    ms: dict[str, list[list[float]]] = {code: [] for code in codes}
    mb: dict[str, list[float]] = {code: [] for code in codes}
    _import(FOUR + FIRST_AGENT + OURS)
    for _ in range(size.import_rounds):
        for code in codes:
            took_ms, used_mb = _import(code)
            ms[code].append([took_ms])
            mb[code].append(used_mb)
    our_mb = quantile(mb[OURS], 0.5)
    return [
        row_of("import for a first agent", "ms", ms[FOUR], ms[FIRST_AGENT], bound=1.4),
        row_of(
            "first agent, to the least of the four", "ms", ms[FOUR_AT_LEAST], ms[FIRST_AGENT],
            bound=None, note="no server, one model class",
        ),
        row_of("import bargein's three", "ms", ms[FOUR], ms[OURS], bound=1.4),
        row_of(
            "import, to the least of the four", "ms", ms[FOUR_AT_LEAST], ms[OURS], bound=None,
            note="no server, one model class",
        ),
        Row(
            "memory after import", "MB", quantile(mb[FOUR], 0.5), None, our_mb, None,
            value=our_mb, bound=60.0,
        ),
    ]  # fmt: skip

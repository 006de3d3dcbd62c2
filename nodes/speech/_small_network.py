"""Small networks that ship with bargein: their weights are the files in ``networks/``."""

from __future__ import annotations

import json
from base64 import b85decode
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def small_network(
    name: str, hidden: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], float]:
    """Return a network of one hidden layer: inner weights and offsets, outer weights and offset.

    Its weights are signed bytes in base 85: inner ones by feature, inner offsets, outer ones.

    Args:
        name: The name of its file, as ``tests/training`` wrote it.
        hidden: How many neurons the layer has.
    """
    import numpy as np

    found = files("bargein.nodes.speech") / "networks" / f"{name}.json"
    packed = json.loads(found.read_text("utf-8"))
    values = np.frombuffer(b85decode(packed["values"]), np.int8).astype(np.float32)
    inner = values[: -2 * hidden].reshape(-1, hidden) * packed["inner_step"]
    offsets, outer = values[-2 * hidden :].reshape(2, hidden)
    offset: float = packed["offset"]
    return inner, offsets * packed["offset_step"], outer * packed["outer_step"], offset

"""The format of a small network's weights in a Python module."""

from __future__ import annotations

from base64 import b85decode
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PackedNetwork:
    """A network whose weights are signed bytes."""

    values: str
    """In base 85: inner weights by feature, inner offsets, outer weights."""
    inner_step: float
    offset_step: float
    outer_step: float
    offset: float


def unpacked(
    packed: PackedNetwork, hidden: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], float]:
    """Return a network of one hidden layer: inner weights and offsets, outer weights and offset.

    Args:
        packed: The network.
        hidden: How many neurons the layer has.
    """
    import numpy as np

    eighths = np.frombuffer(b85decode("".join(packed.values.split())), np.int8)
    values = eighths.astype(np.float32)
    inner = values[: -2 * hidden].reshape(-1, hidden) * packed.inner_step
    offsets, outer = values[-2 * hidden :].reshape(2, hidden)
    return inner, offsets * packed.offset_step, outer * packed.outer_step, packed.offset

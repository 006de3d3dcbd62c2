"""How code of others is called: what it raises ends its own work alone, and is told once."""

from ._closing import closing as closing
from ._contain import CONTAINED as CONTAINED
from ._contain import as_error as as_error
from ._contain import contain as contain
from ._failures import Failures as Failures

__all__ = ["CONTAINED", "Failures", "as_error", "closing", "contain"]

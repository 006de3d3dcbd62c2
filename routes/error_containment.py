"""Calls foreign code so that its errors end only its own work, and are reported once."""

from ._generator_cancel_scope import closing as closing
from ._repeated_failures import Failures as Failures
from ._user_errors import CONTAINED as CONTAINED
from ._user_errors import as_error as as_error
from ._user_errors import contain as contain
from ._user_errors import first_error as first_error
from ._user_errors import is_stop as is_stop
from ._user_errors import only_error as only_error
from ._user_errors import text_of as text_of

__all__ = [
    "CONTAINED",
    "Failures",
    "as_error",
    "closing",
    "contain",
    "first_error",
    "is_stop",
    "only_error",
    "text_of",
]

"""The commands of operators: ``bargein calls`` and ``bargein call``."""

from ._call_commands import add_calls as add_calls

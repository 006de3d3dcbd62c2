"""Measures turn taking on recordings of people, in virtual time: the command ``bargein eval``.

``command()`` plays a folder of recordings into calls; ``Row`` is a line of its table.
"""

from ._eval_command import command as command
from ._recordings import RecordingsError as RecordingsError
from ._table import Row as Row
from ._table import as_json as as_json
from ._table import head as head
from ._table import lines as lines
from ._table import told as told

__all__ = ["RecordingsError", "Row", "as_json", "command", "head", "lines", "told"]

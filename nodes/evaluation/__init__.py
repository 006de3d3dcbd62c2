"""Turn taking on recordings of people, in virtual time: what ``bargein eval`` runs."""

from ._command import command as command
from ._recordings import RecordingsError as RecordingsError
from ._table import Row as Row
from ._table import as_json as as_json
from ._table import head as head
from ._table import lines as lines
from ._table import told as told

__all__ = ["RecordingsError", "Row", "as_json", "command", "head", "lines", "told"]

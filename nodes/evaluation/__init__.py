"""Measures turn taking on recordings of people, in virtual time: the command ``bargein eval``.

``command()`` plays a folder of recordings into calls; ``MeasurementRow`` is a line of its table.
"""

from ._eval_command import command as command
from ._measurement_table import MeasurementRow as MeasurementRow
from ._measurement_table import as_json as as_json
from ._measurement_table import row_lines as row_lines
from ._measurement_table import row_sentence as row_sentence
from ._measurement_table import table_heading as table_heading
from ._recordings import RecordingsError as RecordingsError

__all__ = [
    "MeasurementRow",
    "RecordingsError",
    "as_json",
    "command",
    "row_lines",
    "row_sentence",
    "table_heading",
]

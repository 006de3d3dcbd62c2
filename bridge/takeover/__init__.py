"""A call outlives its worker: what is recorded of it, and how another worker makes it again."""

from ._recorded_calls import RecordedCalls as RecordedCalls
from ._sqlite_journals import open_sqlite_journals as open_sqlite_journals

__all__ = ["RecordedCalls", "open_sqlite_journals"]

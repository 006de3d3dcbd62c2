"""A call outlives its worker: what is recorded of it, and how another worker makes it again."""

from ._recorded_calls import RecordedCalls as RecordedCalls

__all__ = ["RecordedCalls"]

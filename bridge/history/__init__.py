"""The history of a call: what was said as it was heard, and how a model is told of it."""

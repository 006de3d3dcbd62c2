"""What is noticed of a call: silent stages, blocked loops, failing providers, errors."""

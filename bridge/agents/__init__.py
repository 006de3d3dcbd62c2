"""The agents of a call: which one is heard, hand-overs, and the usual chain."""

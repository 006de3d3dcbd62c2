"""The colours of the picture.  Blue, teal and magenta differ for every kind of colour vision."""

CALLER = "#2563eb"
CALLER_PALE = "#e3ecfd"
AGENT = "#0f766e"
AGENT_PALE = "#d9f3ef"
CUT = "#be185d"
DROPPED = "#94a3b8"
DROPPED_TEXT = "#64748b"
DROPPED_PALE = "#f8fafc"
GRID = "#e5e7eb"
HELD = "#b45309"
HELD_PALE = "#fde9c8"
SENT = "#cbd5e1"

STATES = {
    "idle": "#f3f4f6",
    "listening": "#c7dafd",
    "thinking": "#fde68a",
    "tool": "#ddd6fe",
    "speaking": "#a7e8df",
    "closed": "#d1d5db",
}

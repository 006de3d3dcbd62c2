"""Google's Gemini: a chat model."""

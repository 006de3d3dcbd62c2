"""Vapi: assistants whose custom model is an app."""

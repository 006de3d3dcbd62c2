"""OpenAI and servers with its API: chat, hearing, speaking, and speech to speech."""

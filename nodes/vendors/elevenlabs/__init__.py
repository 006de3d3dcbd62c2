"""ElevenLabs: an ear and a voice."""

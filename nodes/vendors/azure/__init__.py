"""Azure OpenAI: a chat model, whole utterances to text, and a voice."""

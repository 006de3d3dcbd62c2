"""AssemblyAI: an ear."""

"""What the agents say: answers, their transcripts, and how they end."""

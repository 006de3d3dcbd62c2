"""Who answers a telephone, the tone of a voicemail, and callers who put the line on hold."""

"""What the parts of a call share."""

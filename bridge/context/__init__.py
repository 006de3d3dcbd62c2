"""What the parts of a call share: the floor, the running tools, receipts of verbs."""

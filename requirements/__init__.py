"""The locks of all extras, and what writes, reads and installs them."""

"""Soniox: an ear whose model decides when a turn is over."""

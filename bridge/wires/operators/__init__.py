"""Operators list, watch and steer the calls of all processes; imported once one of them asks."""

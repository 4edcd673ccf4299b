"""Faults of the hardware as conditions; campaigns of them are in ``simulator.faults``."""

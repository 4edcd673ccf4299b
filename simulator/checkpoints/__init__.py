"""Finished sweeps of several models beside each other, grouped by how they were trained."""

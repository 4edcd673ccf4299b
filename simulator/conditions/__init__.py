"""Conditions: corruptions, attacks and faults that are applied to every stack; one file each."""

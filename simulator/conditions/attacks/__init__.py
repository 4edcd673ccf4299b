"""Attacks on the input of a classifier."""

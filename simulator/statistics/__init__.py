"""Intervals, tests, percentiles and densities; from numbers to numbers."""

"""Intervals, tests, percentiles and densities: functions of numbers only."""

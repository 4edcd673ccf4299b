"""Latency: percentiles that the sample can carry."""

"""Latency measurements: MLPerf's scenarios, percentiles, and quality with a deadline."""

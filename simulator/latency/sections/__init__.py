"""The report sections of the timed experiments."""

"""Reports read results; they never measure."""

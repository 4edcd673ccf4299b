"""What the figures of two runs say: statistics, comparison, the gate."""

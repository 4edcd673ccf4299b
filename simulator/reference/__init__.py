"""What backends are held against: float64 numpy, written from the standards."""

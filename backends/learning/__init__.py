"""Networks that learn, in PyTorch."""

"""``simulate``: what a model loses between two stacks."""

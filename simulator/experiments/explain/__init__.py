"""``simulate explain``: what each axis on which two stacks differ costs."""

"""Generation: what a language model writes, token by token, and where two stacks part."""

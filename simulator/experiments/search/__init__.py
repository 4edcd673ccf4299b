"""One search over stacks: a space of options, an evaluator that runs them, and policies."""

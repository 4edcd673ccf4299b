"""Speech synthesis: two stacks say the same text."""

"""Diagnose: which part of two stacks differs, what the difference is called, and what to change."""

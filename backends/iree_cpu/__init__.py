"""IREE."""

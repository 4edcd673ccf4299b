"""Embedding: which of several texts a model of sentences finds nearest to a query."""

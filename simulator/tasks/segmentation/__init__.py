"""Semantic segmentation: from a network's scores to a class for every pixel of the image."""

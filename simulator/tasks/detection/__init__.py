"""Object detection: from a network's outputs to boxes in the image, and what they are worth."""

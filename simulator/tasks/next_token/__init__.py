"""Next token: KL divergence and equal most likely tokens over the chunks of a text."""

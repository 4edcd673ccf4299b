"""Models: their cards, their files, and the artifacts made from them."""

"""What a model's outputs mean: a folder for each of our tasks; see :mod:`.task`."""

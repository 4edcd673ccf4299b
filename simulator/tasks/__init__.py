"""What a model's outputs mean, one file a task."""

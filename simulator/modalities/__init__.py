"""What a sample is: one room a modality."""

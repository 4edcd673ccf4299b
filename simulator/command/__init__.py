"""What a command is: an experiment, its options, and the table of all experiments."""

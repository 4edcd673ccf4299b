"""What can be asked of stacks, one file a command."""

"""What happens to the world or to the machine, whatever the stack; one file a kind."""

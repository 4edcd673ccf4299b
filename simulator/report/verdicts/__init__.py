"""What the verdict of each command says."""

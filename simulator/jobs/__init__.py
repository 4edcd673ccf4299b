"""What the commands do: one job a file, from what a person wrote to a run folder."""

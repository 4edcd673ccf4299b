"""The experiments behind the commands: compare, explain, sweep, worst, check a profile."""

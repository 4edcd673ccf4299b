"""Voice activity: where in a recording somebody speaks."""

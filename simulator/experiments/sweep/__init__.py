"""``simulate sweep``: every option of a suite."""

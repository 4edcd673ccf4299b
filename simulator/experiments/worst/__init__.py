"""``simulate worst``: the combination of a suite's options that loses most."""

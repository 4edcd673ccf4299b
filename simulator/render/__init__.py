"""``simulate render``: a data set as one stack sees it, on disk."""

"""Bounds on what comes from others: files, servers, cards. More than these is refused in a line."""

NAMES = 100_000
"""Names that the ranges ``{0000..0049}`` of a path stand for together."""
CHOICES = 1_000
"""Choices of a question; each is an inference."""
ANSWER = 2**27
"""Bytes of a server's answer that is read in one go: a listing, a part of a shard."""
LISTED = 2_000_000
"""Files below a URL whose folders are listed one by one."""
FOLDERS = 20_000
"""Folders below such a URL."""
GROWTH = 256
"""Times that a tokenizer's replacements may lengthen a text."""
POSITIONS = 2**27
"""Numbers of a table of positions, which a model's file only names the size of."""
SECONDS = 60.0
"""That a step of a sample may take; ``--timeout`` gives another number."""

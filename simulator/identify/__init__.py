"""Which stack made this recording? The space of profiles, and what is needed to search it."""

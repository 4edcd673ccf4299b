"""Analysis of results: attribution to axes, and the release gate."""

"""How a part of a stack is known, in one word: the same on a screen, in a page, in an audit."""

from __future__ import annotations

UNCLAIMED = "not claimed"


def known(kind: str, claimed: bool) -> str:
    """Return the kind of evidence, as people are told it.

    Args:
        kind: of evidence.
        claimed: whether the profile itself claims it. Where it does not, a library that ran here
            says nothing of the device that the profile stands for.
    """
    return UNCLAIMED if kind == "native" and not claimed else kind

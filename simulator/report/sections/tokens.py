"""Tokens of the worst flips, where the stacks' tokenizers differ."""

from __future__ import annotations

from simulator.report.reading import Run
from simulator.report.sections.section import Section, Table, part
from simulator.typed import plain

_SHOWN = {"\n": "\u23ce", "\t": "\u21e5", "\r": "\u240d", " ": "\u2423"}
"""What stands for a character that cannot be seen."""


@part(order=185)
def pieces(run: Run) -> Section | None:
    """Show the pieces of both stacks side by side, of texts that are tokenized differently."""
    rows = []
    for flip in (plain(one) for one in run.summary["worst_flips"]):
        for one in flip.get("beside") or ():
            sides = (_told(*side) for side in zip(one["pieces"], one["tokens"], strict=True))
            rows.append([f"{flip['sample']}, request {one['request']}", *sides])
    if not rows:
        return None
    return Section(
        "tokens",
        "Tokens that differ",
        "Where do the two stacks read another text?",
        ["A bar stands between two tokens, \u2423 for a blank; only where they differ is shown."],
        tables=[Table(["text", "train", "deploy"], rows, "Tokens of the worst flips")],
    )


def _told(pieces: list[str], count: int) -> str:
    shown = ["".join(_SHOWN.get(letter, letter) for letter in piece) for piece in pieces]
    return f"{' | '.join(shown)} ({count:,} tokens)"

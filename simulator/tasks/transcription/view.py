"""How transcripts are shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simulator.tasks.view import View

_LENGTH = 120
"""Characters of a transcript that are shown."""


class TranscriptionView(View):
    """Both texts; the word error rate is told beside the accuracy."""

    metrics: ClassVar[Mapping[str, str]] = {
        "word_accuracy": "word accuracy (1 - WER)",
        "exact": "exact transcripts",
    }
    kinds: ClassVar[Mapping[str, str]] = {"transcripts": "changed transcripts"}
    besides = ("transcripts",)
    titles = ("words changed", "train heard", "deploy heard")

    def words(self, flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return how many words changed, and both texts."""
        before, after = (_short(flip[side]["text"]) for side in ("train", "deploy"))
        return f"{flip['changed']} of {flip['units']}", before, after

    def lines(self, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return how many transcripts changed, and the word error rate of both stacks."""
        found = super().lines(summary)
        rates = [summary[side]["metric"]["word_accuracy"] for side in ("train", "deploy")]
        if None not in rates:
            found.append(("WER", " -> ".join(f"{1 - rate:.2%}" for rate in rates)))
        return found


def _short(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 1]}…"

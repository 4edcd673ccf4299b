"""How generated texts are shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from simulator.tasks.view import View

_LENGTH = 60


class GenerationView(View):
    """Texts stand side by side; a line tells after how many tokens they part."""

    metrics: ClassVar[Mapping[str, str]] = {"exact": "exact match"}
    kinds: ClassVar[Mapping[str, str]] = {
        "right_to_wrong": "right→wrong",
        "wrong_to_right": "wrong→right",
    }
    titles = ("parts after", "train", "deploy")

    def words(self, flip: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return after how many tokens the texts part, and both texts from there on."""
        at = flip["deploy"]["parting"] or 0
        train, deploy = (_said(flip[side], at) for side in ("train", "deploy"))
        return f"{at} token{'' if at == 1 else 's'}", train, deploy

    def lines(self, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the kinds of flips, and where texts part."""
        flips = summary["flips"]
        found = super().lines(summary)
        if flips["earliest_parting"] is not None:
            words = (
                f"after {flips['earliest_parting']:,} tokens at the earliest, "
                f"{flips['median_parting']:g} in the median"
            )
            found.append(("texts part", words))
        times = [
            f"{side} {flips[f'{side}_first_token_ms']:.2f} ms, then {_each(flips, side)}"
            for side in ("train", "deploy")
            if flips[f"{side}_first_token_ms"] is not None
        ]
        if times:
            found.append(("first token after", "; ".join(times)))
        return found


def _each(flips: Mapping[str, Any], side: str) -> str:
    each = flips[f"{side}_token_ms"]
    return "no other" if each is None else f"{each:.2f} ms for each other"


def _said(side: Mapping[str, Any], at: int) -> str:
    """A text, or its ids from the parting on where there is no text."""
    text = side["text"]
    if text is None:
        text = " ".join(map(str, (side["tokens"] or [])[at:]))
    text = " ".join(text.split()) or "(nothing)"
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 1]}…"

"""What was asked where answers changed: the text, its choices, and who picked which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.report.sections.section import Table
from simulator.report.words import SIDES


def questions(flip: Mapping[str, Any]) -> list[Table]:
    """Return a table of what a flip's sample asked; none where its modality keeps no words.

    Args:
        flip: of ``worst_flips``; ``asked`` has a context and a continuation for each request.
    """
    asked = flip.get("asked") or []
    shared = len({one["context"] for one in asked}) == 1
    rows = [["question", asked[0]["context"], ""]] if shared else []
    for number, one in enumerate(asked):
        text = one["continuation"] if shared else one["context"] + one["continuation"]
        if text:
            name = f"choice {number + 1}" if len(asked) > 1 else "continuation"
            rows.append([name, text.strip(), _picked(flip, number) if len(asked) > 1 else ""])
    head = ["", "text", "picked by"]
    return [Table(head, rows, f"What {flip['sample']} asks")] if rows else []


def _picked(flip: Mapping[str, Any], number: int) -> str:
    sides = [side for side in SIDES if (flip.get(side) or {}).get("answer") == number]
    return "; ".join(filter(None, (" and ".join(sides), "right" * (flip["label"] == number))))

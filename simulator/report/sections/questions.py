"""What was asked where answers changed: the text, its choices, and who picked which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.report.sections.section import Table
from simulator.report.words import SIDES
from simulator.tasks.view import View


def questions(flip: Mapping[str, Any], view: View) -> list[Table]:
    """Return a table of what a flip's sample asked; none where its modality keeps no words.

    Args:
        flip: of ``worst_flips``; ``asked`` has a context and a continuation for each request.
        view: of the task.
    """
    asked = list(flip.get("asked") or [])
    if not asked:
        return []
    if view.asks_first:
        question: str | None = asked.pop(0)["context"]
    else:
        alike = len({one["context"] for one in asked}) == 1
        question = asked[0]["context"] if alike else None
    kept = view.asks_first or question is None  # whether contexts tell the choices apart
    texts = [one["context"] * kept + one["continuation"] for one in asked]
    several = view.asks_first or len(asked) > 1
    rows = [] if question is None else [["question", question, ""]]
    for number, text in enumerate(texts):
        if text:
            name = f"choice {number + 1}" if several else "continuation"
            rows.append([name, text.strip(), _picked(flip, view, number) if several else ""])
    return [Table(["", "text", "picked by"], rows, f"What {flip['sample']} asks")] if rows else []


def _picked(flip: Mapping[str, Any], view: View, number: int) -> str:
    *picks, right = view.picks(flip)
    sides = [side for side, pick in zip(SIDES, picks, strict=True) if pick == number]
    return "; ".join(filter(None, (" and ".join(sides), "right" * (right == number))))

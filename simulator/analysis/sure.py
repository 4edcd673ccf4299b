"""How sure it is on which side of a rule's limit a figure lies, and what would decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simulator.analysis.figures import AnySummary, find
from simulator.statistics import planning
from simulator.statistics.paired import clopper_pearson


def sure(path: str, limit: float, summary: AnySummary) -> dict[str, object]:
    """Return ``chance``, ``ci95``, ``more`` and ``more_of`` of an outcome, as far as known.

    Args:
        path: of the figure in the summary; one without an interval has none of them.
        limit: that the figure is held against.
        summary: as in ``summary.json``.
    """
    *parent, last = path.split(".")
    if last not in ("rate", "value", "ms"):
        return {}
    ends = find(summary, [*parent, "ci95"])
    if not isinstance(ends, list | tuple) or None in ends:
        return {}
    chance = bool(ends[0] <= limit <= ends[1])
    found = {"chance": chance, "ci95": list(ends)}
    if not chance or last == "ms":
        return found
    return found | _more(parent, (ends[0], ends[1]), limit, summary)


def _more(
    path: Sequence[str], ends: tuple[float, float], limit: float, summary: AnySummary
) -> dict[str, object]:
    """How many more samples would decide a rule, if its figure stays; and what they are."""
    node = find(summary, path)
    samples, of = summary.get("samples") or 0, summary.get("sample_unit", "sample")
    value = node["rate"] if "rate" in node else node["value"]
    seen = summary.get("labelled") or samples
    if "of" in node:
        seen, of = node["of"], "fault" if path[0] == "stacks" else of
    elif "units" in node:
        seen = samples
    if not seen:
        return {}
    counted = "units" in node and (node["units"] == seen or not value)
    if counted or ("of" in node and math.isclose(ends[1], clopper_pearson(node["count"], seen)[1])):
        more = planning.for_rate(value * seen, seen, limit)
    elif node.get("method") == "Bonett-Price":
        more = planning.for_difference(value, ends, seen, limit)
    else:
        more = planning.by_root(value, ends, seen, limit)
    return {"more": more, "more_of": of}

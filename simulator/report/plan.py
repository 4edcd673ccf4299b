"""The DAG of a plan, as a tree with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from simulator.pipeline.plan import Plan


def render(plan: Plan, console: Console) -> None:
    """Print every unique computation once, with the number of stacks that use it.

    Args:
        plan: what would be run.
        console: where it goes.
    """
    uses = Counter(index for path in plan.paths for index in path)
    tree = Tree("an image")
    branches: dict[int, Tree] = {}
    for index, node in enumerate(plan.nodes):
        if node.step.stage == "postprocess":
            continue
        above = tree if node.parent is None else branches[node.parent]
        many = f"  [dim]for {uses[index]} stacks[/]" if uses[index] > 1 else ""
        words = _words(node.step.identity)
        branches[index] = above.add(f"[bold]{node.step.stage}[/] {words}{many}")
    console.print(tree, highlight=False)
    unique = Counter(node.step.stage for node in plan.nodes)
    asked = Counter(plan.nodes[index].step.stage for path in plan.paths for index in path)
    for stage in asked:
        counts = f"{asked[stage]:>5} asked, {unique[stage]:>4} unique"
        console.print(f"{stage:<12}{counts}", highlight=False)
    console.print(
        f"{len(plan.paths)} stacks: {sum(asked.values())} steps an image, {len(plan.nodes)} "
        "unique; equal tensors of different steps are found while running, and inferred once",
        highlight=False,
    )


def _words(identity: Any) -> str:
    """Name a step by its backend and options."""
    for part in identity:
        if isinstance(part, Mapping) and "backend" in part:
            options = part["options"].values()
            values = [v for v in options if isinstance(v, str)]
            return escape(" ".join([part["backend"], *values]))
        if isinstance(part, Mapping) and "kind" in part:
            return escape(f"{part['kind']} {part['rounding']}")
    return escape(" ".join(str(part) for part in identity[1:] if isinstance(part, str)))

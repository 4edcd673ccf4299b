"""The DAG of a plan, as a tree with counts."""

from __future__ import annotations

from collections import Counter

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
    tree = Tree("a sample")
    branches: dict[int, Tree] = {}
    main = {index for path in plan.paths for index in path}
    for index, node in enumerate(plan.nodes):
        if index not in main:
            continue
        if node.recipe.stage == "postprocess":
            continue
        above = tree if node.parent is None else branches[node.parent]
        many = f"  [dim]for {uses[index]} stacks[/]" if uses[index] > 1 else ""
        words = escape(node.recipe.words())
        branches[index] = above.add(f"[bold]{node.recipe.stage}[/] {words}{many}")
    console.print(tree, highlight=False)
    unique = Counter(plan.nodes[index].recipe.stage for index in main)
    asked = Counter(plan.nodes[index].recipe.stage for path in plan.paths for index in path)
    for stage in asked:
        counts = f"{asked[stage]:>5} asked, {unique[stage]:>4} unique"
        console.print(f"{stage:<12}{counts}", highlight=False)
    console.print(
        f"{len(plan.paths)} stacks: {sum(asked.values())} steps a sample, {len(main)} "
        "unique; equal tensors of different steps are found while running, and inferred once",
        highlight=False,
    )

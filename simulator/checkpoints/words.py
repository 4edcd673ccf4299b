"""What a comparison of models says in sentences, and what it cannot say."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.report.words import SIGNIFICANT, count, failing, moved, title
from simulator.results.checkpoints import Checkpoints, Comparison


def verdict(found: Checkpoints) -> list[str]:
    """Return a sentence for each model that fails, then one or two for each further recipe."""
    failed = failing(found)
    if len(found.recipes) == 1:
        return [*failed, f"All are {found.first}: there is no second recipe to compare with."]
    return failed + [
        sentence
        for name in found.recipes
        if name != found.first
        for sentence in (_here(found, name), _anywhere(found, name))
    ]


def _here(found: Checkpoints, name: str) -> str:
    metric = title(found.task, found.metric)
    rows = drops(found, name)
    clear = [row for row in rows if row.p_holm < SIGNIFICANT]
    sides = {
        "more": [row for row in clear if row.value > 0],
        "less": [row for row in clear if row.value < 0],
    }
    parts = [
        f"{word} {metric} than {found.first} under {_listed(side)}"
        for word, side in sides.items()
        if side
    ]
    if not parts:
        return f"{name} is not shown to lose more or less {metric} than {found.first}."
    others = [row.column for row in rows if row not in clear]
    rest = f"; nothing is shown under {_and(others)}" if others else ""
    return f"{name} loses {' and '.join(parts)}{rest}."


def _anywhere(found: Checkpoints, name: str) -> str:
    """What holds for other checkpoints of the same recipes."""
    sizes = [found.recipes[one].checkpoints for one in (name, found.first)]
    if min(sizes) < 2:
        few = _and([one for one, n in zip((name, found.first), sizes, strict=True) if n < 2])
        return (
            f"Whether that is the recipe or the chance of one training cannot be told: there is "
            f"one checkpoint of {few}."
        )
    clear = [
        row
        for row in drops(found, name)
        if row.any_p_holm is not None and row.any_p_holm < SIGNIFICANT
    ]
    trained = f"Of other trainings of {name} and {found.first}"
    if not clear:
        many = " and ".join(str(size) for size in sizes)
        return f"{trained} nothing is shown, with {many} checkpoints."
    return f"{trained} it is shown under {_listed(clear)}."


def drops(found: Checkpoints, name: str) -> list[Comparison]:
    """Return what a recipe loses more than the first one, column by column."""
    return [row for row in found.comparisons if row.recipe == name and row.figure == "drop"]


def limits(found: Checkpoints) -> list[str]:
    """Return what this comparison cannot tell, a sentence each."""
    sizes = {name: recipe.checkpoints for name, recipe in found.recipes.items()}
    seen = _and([f"{count(size, 'checkpoint')} of {name}" for name, size in sizes.items()])
    lines = [
        f"There {'is' if next(iter(sizes.values())) == 1 else 'are'} {seen}. The first interval is "
        "about these very checkpoints on other samples. The second one is about other trainings by "
        "the same recipes too; it is wide where checkpoints are few.",
        "The largest loss of a column is that of the option that did worst on these samples, and "
        "so rather too high; nothing is tested with it.",
        f"A recipe with less accuracy has less to lose, and other {found.sample_unit}s near a "
        "boundary: points "
        "lost and answers flipped are two questions.",
    ]
    if found.left_out:
        some = f"{', '.join(found.left_out[:3])}{', …' if len(found.left_out) > 3 else ''}"
        lines.append(f"Left out, as some model did not run it: {some}.")
    if found.ungrouped:
        lines.append(f"Left out, as they fit no group: {', '.join(found.ungrouped)}.")
    return lines


def _listed(rows: Sequence[Comparison]) -> str:
    return _and([f"{row.column} ({moved(row.value)} points)" for row in rows])


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))

"""The screen of ``simulate sensitivity``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from simulator.experiments.sensitivity.figures import (
    PROFILE,
    Confirmed,
    FlipRate,
    SensitivitySummary,
)


def show(found: SensitivitySummary, folder: str, console: Console) -> None:
    """Print the keep list and what it wins."""
    for line in _lines(found, f"{folder}/{PROFILE}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _lines(found: SensitivitySummary, profile: str) -> Iterator[str]:
    layers, goal, searched = len(found["layers"]), found["goal"], found["searched"]
    if found["keep"] is None:
        yield f"no keep list reaches {goal}, not even all {layers} layers in FP32"
        yield f"without: {_rate(searched)}"
    else:
        told, kept = found["confirmed"], len(found["keep"])
        what = f"{kept} of {layers} layers in FP32 reach" if kept else "no layer need be kept for"
        yield f"{what} {goal}: {_confirmed(told)}"
        yield f"without: {_rate(told['without'])}"
        if kept:
            yield f"with:    {_rate(told['with'])}, paired p {told['p']:.2g}"
            yield f"profile: {profile}"
    if found["skipped"]:
        yield f"skipped: {found['skipped']} images that a stack could not read"
    tried = [one for one in found["layers"] if "flips" in one]
    yield (
        f"alone in FP32, flips of {searched['images']} (without {searched['flips']}); with "
        f"{len(tried)} layers tried, p above {0.05 / max(len(tried), 1):.2g} is within chance:"
    )
    for one in tried:
        yield f"  {one['name']}: {one['flips']} ({-one['won']:+d}), p {one['p']:.2g}"


def _confirmed(told: Confirmed) -> str:
    """Return whether images that were not searched confirm it, and how sure that is."""
    flips, images = told["with"]["flips"], told["with"]["images"]
    seen = f"{flips} of {images} images that were not searched flip"
    if told["sure"]:
        return f"confirmed, {seen}" if told["holds"] else f"not confirmed, {seen}"
    end = told["with"]["ci95"][1 if told["holds"] else 0]
    more = f"; {told['more']:,} more would decide it if the rate stays" if told["more"] else ""
    return f"UNDECIDED, {seen}, but {100 * end:.1f} % cannot be excluded{more}"


def _rate(of: FlipRate) -> str:
    low, high = (100 * end for end in of["ci95"])
    return (
        f"{100 * of['rate']:.1f} % of {of['images']} images flip "
        f"(95 % interval {low:.1f} to {high:.1f})"
    )

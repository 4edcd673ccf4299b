"""The axes of a space that are searched together."""

from __future__ import annotations

from simulator.identify.composer import Axes


def blocks(axes: Axes) -> dict[str, tuple[str, ...]]:
    """Return the axes that are searched together, in the order in which they are.

    ``numbers`` are the order of channels and the normalization, ``execution`` is precision, graph
    and runtime, ``color`` what decides most about colors, ``matrices`` the two conversions, and
    ``sampling`` the order of steps and odd sizes. An axis may be in several.
    """
    order = (
        "numbers", "geometry", "resize", "execution", "color", "matrices", "decode", "sampling",
    )  # fmt: skip
    found: dict[str, list[str]] = {name: [] for name in order}
    for axis, options in axes.items():
        for name in _blocks({key for option in options.values() for key in option}):
            found[name].append(axis)
    return {name: tuple(inside) for name, inside in found.items() if inside}


def _blocks(keys: set[str]) -> tuple[str, ...]:
    sections = {key.partition(".")[0] for key in keys}
    if keys <= {"color.order"} or sections == {"normalize"}:
        return ("numbers",)
    parts = {".".join(key.split(".")[:2]) for key in keys}
    several = {
        "color.convert": ("color", "matrices"),
        "color.encode": ("matrices",),
        "color.odd_size": ("sampling",),
        "color.source": ("color", "sampling"),
        "resize.domain": ("color", "sampling"),
    }
    if len(parts) == 1 and (known := several.get(next(iter(parts)))):
        return known
    if "color" in sections:
        return ("color",)
    first = ("decode", "geometry", "resize")
    return (next((name for name in first if name in sections), "execution"),)

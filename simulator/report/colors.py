"""Every color of a page and of its charts, by day and by night, and what it means.

Good and bad have the same two colors everywhere, and no stack has them. They are Okabe and Ito's
bluish green and vermillion, https://jfly.uni-koeln.de/color/, dark enough to be read on white;
people who do not see red or green tell them apart. Nothing is said by color alone: a sign, a word,
a symbol or a hatching says it too.
"""

from __future__ import annotations

_NIGHT = {
    "text": ("#1c1c1c", "#e8e8e8"),
    "faint": ("#5c5c5c", "#a8a8a8"),
    "line": ("#dcdcdc", "#3b3f45"),
    "back": ("#fefefe", "#17191d"),
    "link": ("#004b87", "#8fd0ff"),
    "band": ("#f2f5f8", "#20252b"),
    "good": ("#00805c", "#2aa880"),
    "bad": ("#b84a00", "#ea7a33"),
    "warn": ("#7a4f00", "#f0c674"),
}
"""By name of the page's style the color by day, and by night."""
TEXT, FAINT, GRID, BACK, _, _, GOOD, BAD, _ = (day for day, _ in _NIGHT.values())
EVEN = "#868b92"
"""Neither good nor bad; the same by day and by night."""
CLEAR = "rgba(0,0,0,0)"
STACKS = (
    ("#004b87", "#8fd0ff"),
    ("#cc79a7", "#c878a6"),
    ("#7a5c00", "#f0e442"),
    ("#2e8fcb", "#3f9fdb"),
    ("#6a4fb3", "#b3a1ec"),
    ("#5a5a5a", "#b5b5b5"),
    ("#93005c", "#ff9fd2"),
    ("#000001", "#fffffe"),
)
"""Of each stack by day and by night. The first two are far apart in lightness, so that a pair is
told apart in grey."""


def band(color: str) -> str:
    """Return a color to fill a band with, seen through."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"


DARK = {
    **dict(_NIGHT.values()),
    **dict(STACKS),
    **{band(day): band(night) for day, night in STACKS},
}
"""What charts are painted in instead of each color where the reader's screen is dark."""


def css() -> str:
    """Return the page's colors as variables of its style."""
    day, night = (
        " ".join(f"--{name}: {both[at]};" for name, both in _NIGHT.items()) for at in (0, 1)
    )
    return (
        f":root {{ {day} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {night} }} }}\n"
    )

"""Figures as plotly.js takes them: traces and a layout, as plain data.

Attributes are those of https://plotly.com/javascript/reference/; one that is None is left out.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic_core import to_json

Attributes = dict[str, Any]
"""Of a part of a figure, by the names that plotly has for them."""
Trace = Attributes
SHARE = "~%"
"""The ``tickformat`` of shares: as many digits as their distance needs (0.5 %, 1 %, 1.5 %)."""
_NUMBERS = {"i1", "i2", "i4", "u1", "u2", "u4", "f4", "f8"}
"""The types of numbers that JavaScript has arrays of."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        data: the traces.
        layout: everything else.
    """

    data: list[Trace]
    layout: Attributes

    def update_layout(self, **more: Any) -> None:
        """Set attributes of the layout; parts that have attributes keep their others."""
        _merge(self.layout, more)

    def update_xaxes(self, **more: Any) -> None:
        """Set attributes of every horizontal axis."""
        self._update_axes("xaxis", more)

    def update_yaxes(self, **more: Any) -> None:
        """Set attributes of every vertical axis."""
        self._update_axes("yaxis", more)

    def _update_axes(self, kind: str, more: Attributes) -> None:
        _merge(self.layout, {name: more for name in self.layout if name.startswith(kind)})

    def to_json(self) -> str:
        """Return the figure as JSON; a number that is not finite becomes null."""
        found = {"data": self.data, "layout": self.layout}
        return to_json(found, inf_nan_mode="null", fallback=_plain).decode()


def scatter(**trace: Any) -> Trace:
    """Return lines or points."""
    return _trace("scatter", trace)


def bar(**trace: Any) -> Trace:
    """Return bars."""
    return _trace("bar", trace)


def box(**trace: Any) -> Trace:
    """Return boxes."""
    return _trace("box", trace)


def heatmap(**trace: Any) -> Trace:
    """Return a heat map."""
    return _trace("heatmap", trace)


def _trace(kind: str, trace: Attributes) -> Trace:
    return {"type": kind, **{name: value for name, value in trace.items() if value is not None}}


def _merge(into: Attributes, more: Attributes) -> None:
    for name, value in more.items():
        known = into.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            into[name] = dict(known)  # its owner may have it in other figures too
            _merge(into[name], value)
        else:
            into[name] = value


def _plain(value: Any) -> Any:
    """Return an array or a number of numpy as JSON has it; plotly.js reads numbers in base64."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{type(value).__name__} is no part of a figure")
    if value.dtype.kind in "iu" and value.size:
        value = value.astype(np.result_type(*map(np.min_scalar_type, (value.min(), value.max()))))
    kind = value.dtype.newbyteorder("<").str.removeprefix("<").removeprefix("|")
    if kind not in _NUMBERS or not value.size:
        return value.tolist()
    found = {"dtype": kind, "bdata": base64.b64encode(value.astype(f"<{kind}").tobytes()).decode()}
    return found if value.ndim == 1 else found | {"shape": ", ".join(map(str, value.shape))}

"""Figures as plotly's Python package has them, which knows the attributes of plotly.js."""

import plotly.graph_objects as go


def drawn(panel):
    """Return a panel's figure.

    Raises:
        ValueError: it has an attribute or a value that plotly.js does not have.
    """
    return go.Figure(panel.figure.data, panel.figure.layout)

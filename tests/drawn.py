"""Figures as plotly's Python package has them, which knows the attributes of plotly.js."""


def drawn(panel):
    """Return a panel's figure.

    Raises:
        ValueError: it has an attribute or a value that plotly.js does not have.
    """
    import plotly.graph_objects as go

    return go.Figure(panel.figure.data, panel.figure.layout)

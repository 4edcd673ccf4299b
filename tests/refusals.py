"""The lines with which something is refused."""

from __future__ import annotations

import pytest

from simulator.errors import ModelError, UserError
from simulator.model.card import Card
from simulator.model.onnxfile import check


def refused(call, *arguments, by=UserError, **options):
    """Return the lines of the error that a call ends with."""
    with pytest.raises(by) as caught:
        call(*arguments, **options)
    return str(caught.value).splitlines()


def refused_model(card):
    """Return the one line for which a card's model is refused."""
    (line,) = refused(lambda: check(Card(card)), by=ModelError)
    return line

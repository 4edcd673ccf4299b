"""A session does not change: what is asked of other samples is another session."""

from dataclasses import FrozenInstanceError

import pytest

from simulator.experiments.session import Session


def test_other_samples_are_another_session(card, data, cache):
    """A part of them calibrated on the rest, and all of them in another order."""
    with Session.open(card, data, 6, 0, 1, None, None) as session:
        every = session.dataset.items

        part = session.subset(every[:2]).calibrating_on(every[2:], every[:2])
        mixed = session.shuffled()

        assert part.dataset.items == every[:2]
        assert part.builder.dataset.items == every[2:] and part.builder.evaluated == every[:2]
        assert [item.name for item in part.builder.order()] == [item.name for item in every[:2]]
        assert mixed.dataset.items != every and {*mixed.dataset.items} == {*every}
        assert session.dataset.items == session.builder.dataset.items == every
        assert session.builder.evaluated is None
        with pytest.raises(FrozenInstanceError):
            session.dataset = part.dataset

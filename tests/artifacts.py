"""Artifacts that tests make of a card, as a session makes them."""

from __future__ import annotations

from simulator.model.artifact import build
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.profile.implementations import choose
from simulator.profile.load import load


def built(path, *overrides, base="pillow_fp32", feeds=None, **more):
    """Return the artifact of a card for a profile, and the profile's implementations."""
    card, profile = Card(path), load(base, overrides)
    choices = choose(profile)
    return build(card, check(card), profile, choices, feeds, **more), choices

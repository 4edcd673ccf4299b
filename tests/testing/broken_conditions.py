"""A correct condition, and broken ones: each trips exactly the check that it is filed under."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from simulator.conditions.condition import Condition
from simulator.contract.recipe import Boundary
from simulator.errors import UserError


@dataclass(frozen=True, eq=False)
class Noise(Condition):
    """Adds noise to what the network gets."""

    level: int
    name = "noise"
    summary = "for tests"
    acts_on: ClassVar[Boundary] = Boundary.INPUT
    modality: ClassVar[str | None] = "image"
    has_chance: ClassVar[bool] = True
    examples: ClassVar[tuple[str, ...]] = ("1", "2")

    @classmethod
    def parse(cls, parameters):
        if not parameters.isdigit():
            raise UserError("noise:LEVEL expected")
        return cls(int(parameters))

    def parameters(self):
        return {"level": self.level}

    def open(self):
        return self._disturb

    def _disturb(self, value, rng):
        return value + rng.normal(0, self.level, value.shape).astype(value.dtype)


class TwoLines(Noise):
    """Would break the table that lists it."""

    summary = "two\nlines"


class Stutters(Noise):
    """Asks for more than it was asked for."""

    @property
    def text(self):
        return f"noise:{self.level + 1}"


class Gullible(Noise):
    """Takes any text for its lowest level."""

    @classmethod
    def parse(cls, parameters):
        return cls(int(parameters) if parameters.isdigit() else 1)


class Nameless(Noise):
    """Has one identity for all levels."""

    def identity(self):
        return [self.name]


class Grows(Noise):
    """Another level after a journey."""

    def __reduce__(self):
        return type(self), (self.level + 1,)


class Unsettled(Noise):
    """Does something else in a thread."""

    def _disturb(self, value, rng):
        there = threading.current_thread() is not threading.main_thread()
        return super()._disturb(value, rng) + np.float32(there)


class SaysNoChance(Noise):
    """Draws, and does not say so."""

    has_chance = False


class SaysChance(Noise):
    """Says that it draws."""

    def _disturb(self, value, rng):
        return value + np.float32(self.level)


class Writes(Noise):
    """Writes into what it was given."""

    def _disturb(self, value, rng):
        found = super()._disturb(value, rng)
        value[...] = 0
        return found


class Crops(Noise):
    """Takes a row away; networks go on, as everything is resized."""

    acts_on = Boundary.FRAME

    def _disturb(self, value, rng):
        noise = rng.integers(0, 9, value.rgb.shape, np.uint8)
        return value.with_planes((value.rgb // 2 + noise)[:-1])


class Destroys(Noise):
    """Leaves a file that nobody can decode."""

    acts_on = Boundary.SOURCE

    def _disturb(self, value, rng):
        return replace(value, data=rng.bytes(len(value.data)))


class Idle(Noise):
    """Does nothing."""

    has_chance = False

    def _disturb(self, value, rng):
        return value.copy()


FAULTS = {
    "it_says_what_it_is": [TwoLines],
    "its_text_is_read_back": [Stutters],
    "wrong_parameters_are_refused": [Gullible],
    "its_identity_says_its_parameters": [Nameless],
    "it_travels": [Grows],
    "equal_draws_are_equal": [Unsettled],
    "trials_differ_where_there_is_chance": [SaysNoChance, SaysChance],
    "what_it_gets_is_left_alone": [Writes],
    "the_kind_is_kept": [Crops],
    "the_network_can_go_on": [Destroys],
    "something_happens": [Idle],
}

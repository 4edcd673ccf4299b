"""Broken modalities: the example vendor's with one fault each, filed under the check that it trips.

They are made when that package is installed: see ``faults``.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import tiny
from pydantic import ConfigDict

from simulator.errors import SampleError
from simulator.profile.section import Section


def faults(vectors):
    """Return check → broken modalities, of the vendor's module."""

    @dataclass(frozen=True)
    class Stamped(vectors.Vector):
        when: int = 0

    class Step(vectors.Scaled):
        """The vendor's step, with what a fault makes of its value."""

        def open(self, runtimes):
            right = super().open(runtimes)
            return lambda source, context: self.changed(right(source, context), source)

        def changed(self, value, source):
            return value

    class Base(vectors.VectorModality):
        Step: Any = vectors.Scaled

        def front_end(self, profile, choices, card):
            (right,) = super().front_end(profile, choices, card)
            return [self.Step(right.arithmetic, right.full_scale, right.length)]

    class Spaced(Base):
        """Its unit is no word."""

        unit = " vector"

    class OpenInput(vectors.VectorInput):
        model_config = ConfigDict(extra="allow")

    class OpenCard(vectors.VectorCard):
        input: OpenInput

    class Careless(Base):
        """Takes any key in a card."""

        Card = OpenCard

    class Offset(Section):
        by: float = 0.0

    class MoreSpec(vectors.VectorSpec):
        offset: Offset = Offset()

    class Undeclared(Base):
        """Has a section that no stage has."""

        Spec = MoreSpec

    class OtherModel(Base):
        """Its model is for five readings."""

        def specimen(self, folder):
            found = super().specimen(folder)
            nodes = [onnx.helper.make_node("ReduceMean", ["x"], ["y"], axes=[1])]
            onnx.save(tiny.model(nodes, {"x": [1, 5]}, {"y": [1, 1]}), folder / "model.onnx")
            return found

    class Forgiving(Base):
        """Reads zeros where there is nothing to read."""

        def read(self, name, path):
            try:
                return super().read(name, path)
            except SampleError:
                return vectors.Vector(np.zeros(4, np.float32), 0)

    class Dated(Base):
        """Notes when a sample was read."""

        clock = itertools.count()

        def read(self, name, path):
            found = super().read(name, path)
            return Stamped(found.values, found.bytes, next(self.clock))

    class Sizeless(Base):
        """Does not say how large a file is."""

        def sizes(self, source):
            return {"length": source.values.size}

    class Wide(Step):
        def changed(self, value, source):
            return value.astype(np.float64)

    class Misnamed(Step):
        stage = "scaling"

    class Wordy(Step):
        def words(self):
            return "two\nlines"

    class Forgetful(Step):
        shift = np.float32(0)

        def changed(self, value, source):
            return value + self.shift

        def __getstate__(self):
            return {k: v for k, v in self.__dict__.items() if k != "shift"}

    class Unsettled(Step):
        def changed(self, value, source):
            there = threading.current_thread() is not threading.main_thread()
            return value + np.float32(there)

    class Writes(Step):
        def changed(self, value, source):
            source.values[0] += 1
            return value

    def stepping(step):
        return type(f"With{step.__name__}", (Base,), {"Step": step, "__doc__": step.__doc__})

    class Shifted(Base):
        """Its step holds more than it says."""

        def front_end(self, profile, choices, card):
            (right,) = super().front_end(profile, choices, card)
            made = Forgetful(right.arithmetic, right.full_scale, right.length)
            object.__setattr__(made, "shift", np.float32(1))
            return [made]

    class Somewhere(vectors.Nowhere):
        def identity(self):
            return object()

    class Unplaced(Base):
        """Its placing is no data."""

        def placing(self, profile, card):
            return Somewhere()

    found = {
        "it_says_what_it_is": [Spaced],
        "its_schemas_are_closed": [Careless],
        "its_sections_are_in_the_stage_table": [Undeclared],
        "its_specimen_fits": [OtherModel],
        "bad_files_are_refused": [Forgiving],
        "reading_is_repeatable": [Dated],
        "samples_have_sizes": [Sizeless],
        "feeds_are_what_comes": [stepping(Wide)],
        "steps_are_known": [stepping(Misnamed)],
        "recipes_are_data": [stepping(Wordy)],
        "travelled_steps_do_the_same": [Shifted],
        "the_front_end_repeats": [stepping(Unsettled)],
        "sources_are_left_alone": [stepping(Writes)],
        "placings_are_data": [Unplaced],
    }
    # A pickle looks classes up in their module by name.
    for local in (Step, Stamped, Somewhere, *Step.__subclasses__()):
        local.__qualname__ = local.__name__
        globals()[local.__name__] = local
    return {check: [one() for one in some] for check, some in found.items()}

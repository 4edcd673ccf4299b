"""Stacks of a space, composed quickly: a search loads thousands of combinations."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import median
from typing import Any

from simulator.contract.recipe import Apply, Boundary, Context, Recipe, Runtimes
from simulator.errors import SampleError, UserError, one_line
from simulator.experiments.session import Session
from simulator.identify.options import Fields
from simulator.model.artifact import digest
from simulator.pipeline.adapted import refuse_together
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile.implementations import Choice, choose
from simulator.profile.load import load
from simulator.profile.modality import schema_of
from simulator.profile.paper_names import kernel
from simulator.profile.profile import Profile
from simulator.profile.suite import Option

Axes = Mapping[str, Mapping[str, Option]]
"""For each axis its options by name, each as dotted profile keys and values, as in a suite."""
Point = tuple[str | None, ...]
"""The name of an option for each axis, in their order; None leaves the axis as in the base."""


@dataclass(frozen=True, slots=True)
class Failed:
    """What a step gives that cannot handle a sample."""

    why: str


@dataclass(frozen=True, eq=False)
class Known(Recipe):
    """A recipe whose identity was computed once; a sample that it cannot handle gives Failed.

    A plan of thousands of stacks spends most of its time on identities, and one stack that fails
    on a sample must not take the others with it.
    """

    recipe: Recipe
    key: str
    _opened: list[Apply] = field(default_factory=list, repr=False)
    _seconds: list[float] = field(default_factory=list, repr=False)

    def __reduce__(self) -> tuple[type[Known], tuple[Recipe, str]]:
        return Known, (self.recipe, self.key)

    @property
    def stage(self) -> str:  # type: ignore[override]
        """That of the recipe."""
        return self.recipe.stage

    @property
    def gives(self) -> Boundary | None:  # type: ignore[override]
        """That of the recipe."""
        return self.recipe.gives

    def identity(self) -> Any:
        """Return the digest of the recipe's identity."""
        return self.key

    @property
    def seconds(self) -> float:
        """The median of the images so far, which no pause of the machine moves."""
        return median(self._seconds or [0.0])

    def memory(self, source: Any) -> int:
        """Return that of the recipe."""
        return self.recipe.memory(source)

    def open(self, runtimes: Runtimes) -> Apply:
        """Open the recipe, once for all plans; where that fails, every sample does."""
        if not self._opened:
            self._opened.append(self._guarded(runtimes))
        return self._opened[0]

    def _guarded(self, runtimes: Runtimes) -> Apply:
        try:
            step = self.recipe.open(runtimes)
        except UserError as error:
            why = Failed(one_line(error))
            return lambda _, __: why

        def apply(value: Any, context: Context) -> Any:
            if isinstance(value, Failed):
                return value
            begun = time.perf_counter()
            try:
                return step(value, context)
            except SampleError as error:
                return Failed(one_line(error))
            finally:
                self._seconds.append(time.perf_counter() - begun)

        return apply


class Composer:
    """Makes the chains of points of a space.

    Args:
        base: the profile that the options change: a path or a name.
        axes: see :data:`Axes`; in the order in which their options are applied.
        session: the model and the samples.

    Attributes:
        axes: the options of each axis; some may be added.
        refused: options of the runtime that cannot run the model, and why.
    """

    def __init__(self, base: str, axes: Axes, session: Session) -> None:
        self.base, self.names = base, tuple(axes)
        self.axes = {axis: dict(options) for axis, options in axes.items()}
        self.refused: dict[str, str] = {}
        self._session = session
        self._profile = load(base)
        self._values = self._profile.spec.model_dump(by_alias=True, exclude_none=True)
        self._choices: dict[str, Choice] = {}
        self._known: dict[Any, Known] = {}
        self._written: dict[Point, Fields] = {}
        self._chosen: dict[str, ResolvedProfile | None] = {}
        self._fronts: dict[Point, tuple[Known, ...] | None] = {}
        self._ends: dict[Point, tuple[Known, ...] | None] = {}

    @property
    def known(self) -> list[Known]:
        """All steps so far."""
        return list(self._known.values())

    def values(self, point: Point) -> Fields:
        """Return the whole document of a point; it shares sections with others and stays as it is.

        Points of a search begin alike: what their first options make of the base is made once.
        """
        if not point:
            return self._values
        if point not in self._written:
            found, option = self.values(point[:-1]), point[-1]
            if option is not None:
                for key, value in self.axes[self.names[len(point) - 1]][option].items():
                    found = _applied(found, key.split("."), value)
            self._written[point] = found
        return self._written[point]

    def same(self, point: Point) -> bool:
        """Whether a point is the base itself."""
        return self.values(point) == self._values

    def alike(self, point: Point) -> bool:
        """Whether a point does what the base does, and only writes more of it."""
        one, base = self.chosen(point), self.chosen((None,) * len(self.names))
        if one is None or base is None or one[1] != base[1]:
            return False
        return self.front(point) == self.front((None,) * len(self.names))

    def chosen(self, point: Point) -> ResolvedProfile | None:
        """Return the stack of a point, or None where it is impossible."""
        values = self.values(point)
        written = repr(values)  # many points are written alike: of RGB no way to make YUV is left
        if written not in self._chosen:
            try:
                spec = schema_of(self._profile.spec.modality).model_validate(values)
                profile = Profile(spec.name, spec, self._profile.origins)
                self._chosen[written] = (
                    profile,
                    {stage: self._interned(choice) for stage, choice in choose(profile).items()},
                )
            except (UserError, ValueError):
                self._chosen[written] = None
        return self._chosen[written]

    def front(self, point: Point) -> tuple[Known, ...] | None:
        """Return the steps of a point up to the network's input; None where it is impossible."""
        if point not in self._fronts:
            self._fronts[point] = self._front(point)
        return self._fronts[point]

    def _front(self, point: Point) -> tuple[Known, ...] | None:
        chosen = self.chosen(point)
        if chosen is None:
            return None
        try:
            recipes = self._session.builder.front_end(*chosen).recipes
        except UserError:
            return None
        return tuple(map(self._recipe, recipes))

    def end(self, point: Point, until: Boundary, calibrated: Point) -> tuple[Known, ...] | None:
        """Return the steps after the network's input; None where the runtime cannot run the model.

        Args:
            point: only its options of precision, graph and runtime matter.
            until: the last value that is needed, OUTPUTS or ANSWER.
            calibrated: a point with the same options of these whose pixels calibrate INT8.
        """
        chosen = self.chosen(calibrated)
        if chosen is None:
            return None
        if calibrated not in self._ends:
            self._ends[calibrated] = self._built(chosen, calibrated)
        steps = self._ends[calibrated]
        if steps is None or until is Boundary.ANSWER:
            return steps
        return tuple(step for step in steps if step.gives is Boundary.OUTPUTS)

    def _built(self, chosen: ResolvedProfile, point: Point) -> tuple[Known, ...] | None:
        pair = {"train": chosen, "deploy": chosen}
        try:
            refuse_together("identified", *chosen, "a search needs")
            stack = self._session.builder.stack("identified", chosen, pair)
        except UserError as error:
            self.refused[" ".join(filter(None, point))] = one_line(error)
            return None
        steps = stack.chain.recipes
        first = next(at for at, step in enumerate(steps) if step.gives is Boundary.OUTPUTS)
        return tuple(map(self._recipe, steps[first:]))

    def _interned(self, choice: Choice) -> Choice:
        key = repr((choice.stage, choice.backend.name, sorted(choice.options.items(), key=str)))
        return self._choices.setdefault(key, choice)

    def _recipe(self, recipe: Recipe) -> Known:
        """The one object for equal recipes; two of equal fields have equal identities."""
        parts = [type(recipe).__name__]
        for one in fields(recipe):  # type: ignore[arg-type]
            value = getattr(recipe, one.name)
            parts.append(f"{id(value)}" if isinstance(value, Choice) else repr(value))
        key = "\n".join(parts)
        if key not in self._known:
            self._known[key] = Known(recipe, digest(recipe.identity()))
        return self._known[key]


def _applied(values: Fields, key: Sequence[str], value: Any) -> Fields:
    """Write one override as :func:`simulator.profile.load.load` does; None removes.

    Returns:
        A document that shares with the given one what is not changed.
    """
    if list(key) == ["resize"] and isinstance(value, str):
        value = kernel(value)
    return _merged(values, _nested(key, value))


def _nested(key: Sequence[str], value: Any) -> Fields:
    for name in reversed(key[1:]):
        value = {name: value}
    return {key[0]: value}


def _merged(values: Fields, new: Fields) -> Fields:
    found = dict(values)
    for name, value in new.items():
        if isinstance(value, dict):
            inner = found.get(name)
            found[name] = _merged(inner if isinstance(inner, dict) else {}, value)
        elif value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found

"""Stages: the parts of a stack, in one open table (entry points ``simulator.stages``).

Ours are in :mod:`simulator.contract.stages`. Another package may add a stage between two of ours:
it has its own section in profiles, its own axis and its own step in the chain, and its
implementations are found, chosen, run and tested like ours.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from simulator.entry_points import Table
from simulator.errors import UserError, one_line


def proved_by(module: str, *functions: str) -> tuple[str, ...]:
    """Return conformance checks of a module of :mod:`simulator.testing`."""
    return tuple(f"simulator.testing.{module}:{function}" for function in functions)


CLAIMS = proved_by("claims", "every_admitted_value_works", "what_is_not_admitted_is_refused")
KEPT = proved_by("manners", "outputs_are_kept", "instances_do_not_mix")
MANNERS = proved_by(
    "manners", "inputs_are_left_alone", "outputs_are_kept", "any_strides_will_do",
    "instances_do_not_mix",
)  # fmt: skip
REPEATS = proved_by("repeats", "the_same_every_time", "threads_see_the_same", "nothing_leaks")


def checks(*own: str) -> tuple[str, ...]:
    """Return the conformance checks of a stage: *own*, and those that all stages share."""
    return (*CLAIMS, *own, *MANNERS, *REPEATS)


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage.

    Strings of the form ``module:name`` are imported when needed, and never in a worker.

    Attributes:
        name: the name that a backend's offer uses.
        about: what it does, in a few words.
        order: its position among the stages; None for one that comes right after ``after``.
        after: the step that it follows, for example ``decode``. In a stack without that step it
            follows the nearest step before.
        modality: the kind of samples that it processes; None for all kinds.
        also: modalities whose profiles may have its section besides: it then makes what is beside
            the samples, once a stack, and is not timed.
        section: the key of its section in a profile; empty for a stage outside stacks.
        axis: the axis that its section belongs to.
        fields_are_axes: whether each field of the section is a separate axis.
        step: the name of its time in records and latency tables; None if it is not timed.
        base: the abstract class of its implementations. A worker process can run them, so arguments
            and results of its public methods must be serializable (arrays, bytes, strings, types
            of the contract, dataclasses). None if no backend implements the stage, or none can
            run in a worker.
        calls: the public methods that are called for each sample; a crash in one loses that sample.
            For a stage that sets ``after``, the first takes that step's value and returns its own.
        shared: keys of other sections that its implementations use; they get them as options,
            named by the last part of the key.
        own: fields of its section that do not belong to its backend.
        words: what a field of its section may say in place of a value of the backend's: the
            modality's front end puts the model card's value there, and checks it then.
        model: the pydantic model of its section, ``module:Class``; by default a section with
            ``backend`` and the fields of that backend's offers.
        checks: the conformance checks, ``module:function``, in the order in which they run; by
            default those that all stages share.
        work: how the shared checks run it: the ``module:Class`` of a
            :class:`simulator.testing.work.Work`. By default its first call takes and returns a
            :class:`simulator.contract.Frame`.
    """

    name: str
    about: str
    order: int | None = None
    after: str | None = None
    modality: str | None = None
    also: tuple[str, ...] = ()
    section: tuple[str, ...] = ()
    axis: str | None = None
    fields_are_axes: bool = False
    step: str | None = None
    base: type[Any] | None = None
    calls: tuple[str, ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    own: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    model: str | None = None
    checks: tuple[str, ...] | None = None
    work: str | None = None

    @property
    def proofs(self) -> tuple[str, ...]:
        """Return the conformance checks; a stage that no backend implements has none."""
        if self.checks is None:
            return checks() if self.base is not None else ()
        return self.checks

    @property
    def shared_fields(self) -> frozenset[str]:
        """The names of the options that come from other sections."""
        return frozenset(key[-1] for key in self.shared)

    @property
    def is_filled(self) -> bool:
        """Whether a section of a profile names the backend that implements it."""
        return self.base is not None and bool(self.section)


def one_word(
    name: str, about: str, order: int, modality: str | None, word: str = "", **more: Any
) -> StageSpec:
    """Return a stage whose section, axis and step have one word: its name, unless another is given.

    Args:
        name: of the stage.
        about: what it does, in a few words.
        order: its position among the stages.
        modality: the kind of samples that it processes; None for all kinds.
        word: that is not its name.
        more: its other attributes; they may give it another axis.
    """
    word = word or name
    own = {"section": (word,), "axis": word, "step": word}
    return StageSpec(name, about, order, modality=modality, **own | more)


STAGES: Table[StageSpec] = Table(
    "simulator.stages", "stage", lambda found: isinstance(found, StageSpec)
)


@cache
def stages(modality: str | None = None) -> tuple[StageSpec, ...]:
    """Return the stages in pipeline order; those that are beside the samples last.

    Args:
        modality: leave out those of other modalities; None keeps all.

    Raises:
        UserError: a stage does not load, or follows a step that no stage has.
    """
    found = list(STAGES)
    places: dict[str, int] = {}
    for spec in found:
        if spec.order is not None and spec.step is not None:
            places[spec.step] = max(spec.order, places.get(spec.step, 0))
    ordered = sorted(found, key=lambda spec: _place(spec, places))
    if modality is None:
        return tuple(ordered)
    own = [spec for spec in ordered if spec.modality in (None, modality)]
    return (*own, *(spec for spec in ordered if modality in spec.also))


@cache
def timed_steps(modality: str | None = None) -> tuple[str, ...]:
    """Return the names of the steps that are timed, in pipeline order.

    Args:
        modality: leave out those of other modalities; None keeps all.
    """
    steps = (spec.step for spec in stages(modality) if modality not in spec.also)
    return tuple(dict.fromkeys(step for step in steps if step is not None))


def device_steps() -> tuple[str, ...]:
    """Return the timed steps that a backend implements; a device can report times for these."""
    return tuple(dict.fromkeys(s.step for s in stages() if s.is_filled and s.step is not None))


def forget() -> None:
    """Forget which packages are installed; for tests that install one."""
    STAGES.forget()
    stages.cache_clear()
    timed_steps.cache_clear()


def named(reference: str) -> Any:
    """Import ``module:name``.

    Raises:
        UserError: it does not exist, or its module does not load.
    """
    module, _, name = reference.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # the package's code may raise anything
        raise UserError(f"{reference} does not load: {one_line(error)}") from error


def _place(spec: StageSpec, places: dict[str, int]) -> tuple[int, int, str]:
    if spec.order is not None:
        return spec.order, 0, spec.name
    if spec.after not in places:
        known = ", ".join(sorted(places, key=lambda step: places[step]))
        raise UserError(
            f"the stage {spec.name!r} follows {spec.after!r}, which is not a step (steps: {known})"
        )
    return places[spec.after], 1, spec.name

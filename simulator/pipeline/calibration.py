"""Calibration inputs for quantizers: samples after a stack's preprocessing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from simulator.contract import Array
from simulator.contract.passes import Fitting
from simulator.contract.recipe import Chain
from simulator.data.address import root_of
from simulator.data.folder import Dataset, Files, Item, may_equal, subset
from simulator.data.source import samples_of
from simulator.digests import sha256
from simulator.errors import DataError, SampleError
from simulator.modalities.modality import Modality
from simulator.model.artifact import Feeds
from simulator.notices import Kind, Notice
from simulator.pipeline.float_runtime import running
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import Choice


@dataclass(frozen=True, slots=True)
class Asked:
    """What asks for calibration samples.

    Attributes:
        what: it makes of them, in messages.
        samples: how many.
        source: ``data``: drawn from the evaluated samples; otherwise what ``--data`` takes.
        key: of *source* in a profile.
    """

    what: str
    samples: int
    source: str
    key: str = "calibration.source"


@dataclass(frozen=True, slots=True)
class Calibrator:
    """Finds calibration samples for one model and one data set.

    Attributes:
        modality: of the samples.
        only_input: the name of the network's first input; an array from a chain is fed to it.
        dataset: the samples that ``data`` means; the evaluated ones, but for *evaluated*.
        seed: of the random choice of calibration samples.
        runtimes: of the session.
        evaluated: the evaluated samples, where they are others.
    """

    modality: Modality
    only_input: str
    dataset: Dataset
    seed: int
    runtimes: RuntimePool
    evaluated: Sequence[Item] | None = None

    def feeds(self, asked: Asked, through: Chain) -> tuple[Feeds, list[Notice]]:
        """Return the calibration inputs of a quantizer, and warnings about them.

        Args:
            asked: what asks for them.
            through: the preprocessing steps that they go through.

        Raises:
            DataError: the calibration folder cannot be read.
        """
        items, warnings = self._chosen(asked)
        remarks: dict[str, str] = {}

        def tensors() -> Iterator[Mapping[str, Array]]:
            for (value,) in self._walked([through], items, asked.what, remarks):
                yield from _feeds(value, self.only_input)

        return Feeds(_identity(items, [through]), tensors, remarks), warnings

    def fitting(
        self, asked: Asked, through: Sequence[Chain], choice: Choice
    ) -> tuple[Fitting, list[Notice]]:
        """Return what a rewrite of the graph is fitted to, and warnings about it.

        Args:
            asked: what asks for it.
            through: the preprocessing steps of each stack that the samples go through.
            choice: the runtime that runs parts of the network, in FP32.

        Raises:
            DataError: the calibration folder cannot be read.
        """
        items, warnings = self._chosen(asked)
        remarks: dict[str, str] = {}

        def samples() -> Iterator[tuple[Mapping[str, Array], ...]]:
            for values in self._walked(through, items, asked.what, remarks):
                feeds = [list(_feeds(value, self.only_input)) for value in values]
                if len({len(feed) for feed in feeds}) > 1:
                    raise DataError(
                        f"{asked.what}: the two stacks make different numbers of inputs of one "
                        f"{self.modality.unit}, and cannot be compared"
                    )
                yield from zip(*feeds, strict=True)

        identity = [_identity(items, through), choice.identity()]
        return Fitting(identity, samples, partial(running, choice), remarks), warnings

    def _chosen(self, asked: Asked) -> tuple[Sequence[Item], list[Notice]]:
        shared, unit = asked.source == "data", self.modality.unit
        files = Files.of(self.modality)
        images = self.dataset if shared else samples_of(root_of(asked.source), files)
        chosen = subset(images, asked.samples, self.seed).items
        warnings = []
        if len(chosen) < asked.samples:
            warnings.append(
                f"{asked.what} is calibrated on {len(chosen)} {unit}s; the profile asks for "
                f"{asked.samples}; set {asked.key} to a folder with more {unit}s"
            )
        both = (shared and self.evaluated is None) or self._evaluates(chosen)
        if shared and both:
            warnings.append(f"{asked.what} is calibrated on {unit}s that are also evaluated")
        elif both:
            warnings.append(
                f"some of the {unit}s that {asked.what} is calibrated on are also evaluated"
            )
        return chosen, [Notice(Kind.CALIBRATION, warning) for warning in warnings]

    def _evaluates(self, chosen: Sequence[Item]) -> bool:
        """Whether some samples are evaluated too, wherever their files are."""
        evaluated = self.dataset.items if self.evaluated is None else self.evaluated
        alike = may_equal([item.path for item in chosen], evaluated)
        known = {sha256(item.path) for item in alike} - {None}
        return bool(known) and any(sha256(item.path) in known for item in chosen)

    def _walked(
        self, chains: Sequence[Chain], items: Sequence[Item], what: str, remarks: dict[str, str]
    ) -> Iterator[tuple[Any, ...]]:
        """Preprocess samples by every chain; those that fail in one are left out and counted.

        Raises:
            DataError: more than half of them fail.
        """
        failed, unit = 0, self.modality.unit
        executor = LocalExecutor(self.modality, self.runtimes, workers=1)
        arms = {Arm(f"calibration {number}"): chain for number, chain in enumerate(chains)}
        opened = executor.open(plan(arms))
        for item in items:
            try:
                values = tuple(opened.walk(executor.context(item)).answers())
            except SampleError as error:
                failed += 1
                if 2 * failed > len(items):
                    raise DataError(
                        f"{what}: more than half of the {len(items)} calibration {unit}s cannot be "
                        f"preprocessed; the last of them: {error}"
                    ) from error
                remarks[what] = (
                    f"{what}: {failed} of {len(items)} calibration {unit}s could not be "
                    "preprocessed and were left out"
                )
                continue
            yield values


def _identity(items: Sequence[Item], chains: Sequence[Chain]) -> Any:
    """What calibration inputs depend on: the bytes of the samples, and the preprocessing."""
    steps = [[recipe.identity() for recipe in chain.recipes] for chain in chains]
    return [[sha256(item.path) for item in items], *steps]


def _feeds(value: Any, only_input: str) -> Iterator[Mapping[str, Array]]:
    """The inputs of every inference that a sample needs."""
    for one in value if isinstance(value, tuple) else (value,):
        yield {only_input: one} if isinstance(one, np.ndarray) else one

"""Modalities: what a sample is, and its preprocessing up to the network's inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from pydantic import BaseModel

from simulator.contract import U8, Array
from simulator.contract.description import Description, Preprocessing
from simulator.contract.recipe import Recipe
from simulator.contract.stage import named
from simulator.entry_points import Table
from simulator.errors import UserError
from simulator.modalities.specimen import Specimen
from simulator.places import Where
from simulator.profile.document import Values
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.profile.schema import ProfileSpec


@dataclass(frozen=True, slots=True)
class Feed:
    """One input of a network, as the model card describes it.

    Attributes:
        name: of the input; None where the network has only one, whatever its name.
        dtype: of the array.
        shape: of one sample's array, the batch of 1 included; None for a dimension that differs
            between samples.
        axes: the order of the axes, for messages; for example ``NCHW``.
        fill: what a runtime is tried with before the first sample; it is broadcast to the shape.
        tried: then the size of a dimension that differs between samples.
        remedy: what a profile may write so that none differs, for messages.
        is_state: whether it is what earlier inferences gave, empty at first. A runtime that keeps
            this itself does not take it.
    """

    name: str | None
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    axes: str = ""
    fill: float | tuple[float, ...] = 0
    tried: int = 1
    remedy: str = ""
    is_state: bool = False

    def of_one_size(self) -> Feed:
        """Return the feed with the size to try where samples differ: one row, of state nothing."""
        free = (0 if self.is_state and axis else self.tried for axis in range(len(self.shape)))
        pairs = zip(self.shape, free, strict=True)
        return replace(self, shape=tuple(n if own is None else own for own, n in pairs))


@dataclass(frozen=True, slots=True)
class Axes:
    """What the rows and the columns of a spectrogram are.

    Attributes:
        hertz: the center of each band, the lowest first.
        hop: seconds from one frame to the next.
    """

    hertz: tuple[float, ...]
    hop: float


class Placing(Protocol):
    """Gives the position of a sample in the network's input, for one stack; plain data."""

    def identity(self) -> Any:
        """Return all that the result depends on besides the sample, as JSON."""

    def __call__(self, source: Any) -> Any:
        """Return what a task needs to map predictions back to the sample.

        Raises:
            SampleError: the sample does not fit into the network's input.
        """


class Modality(ABC):
    """One kind of sample. An instance is found by entry point, group ``simulator.modalities``.

    Attributes:
        name: as written in profiles and model cards.
        unit: the word for one sample in messages, in the singular.
        suffixes: of the files that are samples, in lower case with the dot.
        pictures: what a report of two stacks shows of samples: ``module:function``, each of which
            plans one kind, see :class:`simulator.experiments.pictures.pictures.Pictures`.
        canvas: ``module:function`` of what answers are drawn on: given a session, a stack and
            samples, it returns (H, W, 3) uint8 of each, or None where the stack shows none; empty:
            no answer is drawn.
        length: the name of the size that the latency of one sample may depend on, where it is not
            that of an image; empty: there is none.
        fed: what the values of a network's first input are, in the plural.
        levels: the unit of differences of two inputs after :meth:`scale`, in reports.
        Spec: the schema of its profiles; ``problems`` and ``settled`` check how sections fit.
        Card: the schema of its model cards.
        tried_with: ``module:function`` that writes a :meth:`specimen` into a folder.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    pictures: ClassVar[tuple[str, ...]] = ()
    canvas: ClassVar[str] = ""
    length: ClassVar[str] = ""
    fed: ClassVar[str] = "values"
    levels: ClassVar[str] = "units"
    Spec: ClassVar[type[ProfileSpec]]
    Card: ClassVar[type[BaseModel]]
    tried_with: ClassVar[str] = ""

    @abstractmethod
    def read(self, name: str, path: Where) -> Any:
        """Read the source of a sample and check it.

        Args:
            name: of the sample, for messages.
            path: where its bytes are: a file, or a part of an archive, a table, a URL.
                :func:`simulator.places.read_sample` reads all of them.

        Raises:
            SampleError: it cannot be read, or is not a sample of this kind.
        """

    def located(self, card: Any, find: Callable[[str, str], Path]) -> Any:
        """Return a card with the full paths of the files that its ``input`` names.

        Args:
            card: the checked content of the model card.
            find: gives the path of a file from its key and its name in the card; it raises
                ModelError where there is none.
        """
        return card

    @abstractmethod
    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return the inputs that the network must have.

        Args:
            card: the checked content of the model card.
        """

    def carried(self, card: Any) -> Mapping[str, str]:
        """Return the output that each input becomes in a later inference of the same sample.

        Args:
            card: the checked content of the model card.
        """
        return {}

    def sized(self, profile: Profile, card: Any, one_size: bool) -> tuple[Any, ...]:
        """Return the card as a stack runs its network: once, or once for each size of the input.

        Args:
            profile: the stack.
            card: the checked content of the model card.
            one_size: whether its runtime opens models of fixed sizes only.

        Raises:
            ModelError: the profile does not fit the card.
        """
        return (card,)

    def in_force(self, profile: Profile, card: Any) -> Mapping[str, Values]:
        """Return what a stack does, by axes that neither its profile nor the card names.

        Args:
            profile: the stack.
            card: the checked content of the model card.
        """
        return {}

    def problem(self, card: Any, graph: Any) -> str | None:
        """Return what in a network does not fit its card, besides inputs and outputs; else None.

        Args:
            card: the checked content of the model card.
            graph: an ``onnx.GraphProto`` whose inputs are those that :meth:`feeds` names.
        """
        return None

    @abstractmethod
    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the steps from the source to the network's input.

        The last step gives :attr:`Boundary.INPUT`: an array where the network has one input, else
        a mapping of names to arrays; a tuple of these where one sample needs several inferences.

        Args:
            profile: the stack.
            choices: the implementation of each of its stages.
            card: the checked content of the model card.

        Raises:
            ModelError: the profile does not fit the card.
        """

    def taken(
        self, profile: Profile, card: Any, name: str, said: Description, own: Preprocessing | None
    ) -> tuple[Profile, Any, list[str]]:
        """Return a stack and a card for a model file that is opened as it is.

        What the file's graph does with its input must not be done twice.

        Args:
            profile: the stack.
            card: the checked content of the model card.
            name: of the file.
            said: what the file says of itself.
            own: what the graph of the card's own file does with its input, if anything.

        Returns:
            The two, of which :meth:`front_end` makes what the file takes; and a line for each thing
            that users should know of it.

        Raises:
            ModelError: the file takes what no stack of this modality can give.
        """
        return profile, card, []

    def refed(self, card: Any, other: Any) -> tuple[Recipe, ...]:
        """Return the steps from one network's input to that of one which takes it otherwise.

        Args:
            card: the content of the card that the first input was made of.
            other: that of the second.
        """
        return ()

    def left_to_card(self, profile: Profile) -> Profile:
        """Return a stack that feeds the card's network as the card says."""
        return profile

    def fed_otherwise(self, card: Any) -> Iterable[tuple[str, Any]]:
        """Yield other ways to feed a model file whose outputs are not those of the network.

        Args:
            card: the content of the card that :meth:`taken` returned.

        Yields:
            What to write in a profile, ``KEY=VALUE``, and the content of a card that does it.
        """
        return ()

    @abstractmethod
    def placing(self, profile: Profile, card: Any) -> Placing:
        """Return the function that gives a sample's position in the network's input."""

    def beside(self, placings: Any, source: Any) -> Any:
        """Return what differs between the inputs of two stacks for a sample, for reports, as JSON.

        Args:
            placings: what :meth:`placing` returned for each of the two.
            source: the sample.

        Raises:
            SampleError: a stack cannot process it.
        """
        return None

    def asked(self, source: Any) -> Any:
        """Return what a sample asks, in words for reports, as JSON; None where it has none.

        Args:
            source: the sample.
        """
        return None

    def remarks(
        self, placing: Any, files: Sequence[Where], choices: Choices, format: str | None
    ) -> list[str]:
        """Return what users should know of samples on their way into a network, a line each.

        Args:
            placing: what :meth:`placing` returned for a stack.
            files: where all samples are.
            choices: the implementation of each of its stages.
            format: that all samples get from a condition; None: each keeps its own.

        Raises:
            UserError: the stack can take none of them.
        """
        return []

    def postprocess(self, profile: Profile, card: Any) -> Any:
        """Return the profile's postprocessing; fields without an effect here are neutral."""
        return profile.spec.postprocess

    def problems(self, profile: Profile, choices: Choices) -> list[str]:
        """Return a line for each combination in a profile that its backends cannot do."""
        return []

    def scale(self, profile: Profile, card: Any) -> Array:
        """Return the factor from a difference of two inputs to the unit shown in reports."""
        return np.ones(1)

    def shown_input(self, profile: Profile, card: Any) -> Callable[[Array], U8] | None:
        """Return what makes (H, W, 3) uint8 of a network's input; None: no picture shows it.

        Args:
            profile: whose way from pixels to the input is undone; inputs of others are shown alike.
            card: the content of the model card.
        """
        return None

    def levels_of(self, card: Any) -> str:
        """Return the unit of differences for one model; by default :attr:`levels`."""
        return self.levels

    def memory(self, source: Any) -> int:
        """Return about how many bytes libraries need for a sample besides their results."""
        return 0

    def sizes(self, source: Any) -> dict[str, int]:
        """Return the sizes of a sample by name, for tables; ``bytes`` is one of them."""
        return {"bytes": len(source.data)}

    def bands(self, value: Any, card: Any) -> Array | None:
        """Return (bands, frames) of a network's input that is a spectrogram; None of any other.

        Args:
            value: what the front end made of a sample; only where samples are sounds.
            card: the checked content of the model card.
        """
        return None

    def axes(self, recipes: Sequence[Recipe]) -> Axes | None:
        """Return what the axes of :meth:`bands` are; None where that is not known.

        Args:
            recipes: the steps to the network's input.
        """
        return None

    def specimen(self, folder: Path) -> Specimen:
        """Write samples, a model card and a profile into a folder, for the conformance suite.

        Raises:
            UserError: the modality has none.
        """
        if not self.tried_with:
            raise UserError(
                f"the modality {self.name!r} has no specimen to test it with; write its "
                "specimen(), see docs/conformance.md"
            )
        made: Specimen = named(self.tried_with)(folder)
        return made


MODALITIES: Table[Modality] = Table(
    "simulator.modalities", "modality", lambda found: isinstance(found, Modality)
)

"""Mix training: every image of every epoch goes through a stack that is drawn from a suite."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator import registry
from simulator.contract import Encoded
from simulator.contract.encoded import inspect, read_image
from simulator.contract.recipe import Chain, Context, generator
from simulator.data.folder import Dataset
from simulator.errors import MissingLibrary, UserError, unknown
from simulator.model.card import Card
from simulator.pipeline.front_end import front_end
from simulator.pipeline.plan import plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.walk import Opened
from simulator.places import Where
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.profile import Profile
from simulator.profile.suite import Option, Suite, load_suite, overrides

F32 = NDArray[np.float32]
TRAIN = "train"
"""The training stack's own option of a column."""
COLUMNS = ("decode", "resize")


class MixedPreprocessing:
    """From an image and a draw to the network's input, by a stack of a suite drawn at random.

    Every column's options are equally likely; the training stack's own is one of them. A draw
    depends on the seed, the number of the draw and the bytes of the image, and on nothing else. No
    PyTorch is needed. It can be pickled into workers, where the libraries are opened again.

    Args:
        suite: a suite's path, or a built-in name; None for the training stack alone.
        model: the model card.
        columns: of the suite, those that are drawn.
        fixed: an option for each further column: it is the training stack's then.
        train: the training stack; the suite's own by default.
        seed: of the draws.

    Attributes:
        options: of each column that is drawn.
        names: of all stacks that may be drawn.
        base: the steps of the training stack, up to the network's input.
        profile: the training stack; workers do not have it.
        moving: of the stacks, those that put images elsewhere in the network's input than it does.

    Raises:
        UserError: a column, an option or a profile is unknown, a stack does not fit the model, or a
            library is missing.

    Source:
        Algorithm 1 of SysNoise (MLSys 2023), which draws once for a batch: name the batch.
    """

    def __init__(
        self,
        suite: str | None,
        *,
        model: str | Path | Card,
        columns: Sequence[str] = COLUMNS,
        fixed: Mapping[str, str] | None = None,
        train: str | None = None,
        seed: int = 0,
    ) -> None:
        card = model if isinstance(model, Card) else Card(Path(model))
        if card.modality.name != "image":
            raise UserError(f"{card.path}: only images are mixed, this takes {card.modality.unit}s")
        loaded = load_suite(suite) if suite is not None else None
        stack = train or (loaded.spec.train if loaded else None)
        if stack is None:
            raise UserError("name a suite, or the training stack")
        self.seed = seed
        if twice := [name for name in columns if name in (fixed or {})]:
            raise UserError(f"{twice[0]} is drawn and fixed at once; leave out one")
        stacks = _Stacks(loaded, stack, card, fixed or {})
        self.base, self.profile = stacks.own, stacks.profile()
        self.options = {name: stacks.of(name) for name in columns}
        drawn = dict(stacks.combined(self.options))
        chains = {name: stacks.chain(profile) for name, profile in drawn.items()}
        _require(chains.values())
        self.names = tuple(chains)
        own = stacks.placing(self.profile)
        self.moving = tuple(name for name, one in drawn.items() if stacks.placing(one) != own)
        self._plan = plan({}, asides=chains)
        self._opened: tuple[int, Opened] | None = None

    def identity(self) -> Any:
        """Return a JSON value of everything that results depend on, besides image and draw."""
        steps = [[node.parent, node.recipe.identity()] for node in self._plan.nodes]
        return [self.seed, {key: list(value) for key, value in self.options.items()}, steps]

    def drawn(self, image: bytes, draw: int = 0, batch: int | None = None) -> dict[str, str]:
        """Return the option of each column.

        Args:
            image: the bytes of a file.
            draw: its number; an epoch's, for example.
            batch: its number; all images of it have one draw, whatever their bytes.
        """
        key = hashlib.blake2b(image, digest_size=16).hexdigest() if batch is None else f"#{batch}"
        random = generator("mix", self.seed, draw, key)
        return {name: of[random.integers(len(of))] for name, of in self.options.items()}

    def __call__(self, image: str | Where | bytes, draw: int = 0, batch: int | None = None) -> F32:
        """Return the network's input, as the stack of this draw makes it in every command.

        Args:
            image: where a JPEG or PNG file is, or its bytes.
            draw: see :meth:`drawn`.
            batch: likewise.

        Returns:
            (C, H, W) float32, or (H, W, C) where the model card says NHWC.

        Raises:
            SampleError: it cannot be read, or a stage failed.
        """
        if isinstance(image, bytes):
            return self.of(inspect("image", image), draw, batch)
        where = Path(image) if isinstance(image, str) else image
        return self.of(read_image(str(image), where), draw, batch)

    def of(self, image: Encoded, draw: int, batch: int | None = None) -> F32:
        """Return the same for an image in memory."""
        name = "/".join(self.drawn(image.data, draw, batch).values()) or TRAIN
        walk = self.opened().walk(Context(image.name, image, None))
        value: F32 = walk.aside(name)[0]
        return value if value.flags.writeable else value.copy()

    def opened(self) -> Opened:
        """Return the stacks, opened in this process."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), Opened(self._plan, RuntimePool())
        return self._opened[1]

    def __getstate__(self) -> dict[str, object]:
        held = {name: value for name, value in self.__dict__.items() if name != "profile"}
        return held | {"_opened": None}


class _Stacks:
    """The training stack, with options of a suite's columns."""

    def __init__(
        self, suite: Suite | None, train: str, card: Card, fixed: Mapping[str, str]
    ) -> None:
        self._columns = suite.spec.columns if suite else {}
        self._where = suite.path if suite else None
        self._train, self._card = train, card
        self._fixed = [line for pair in fixed.items() for line in self._changes(*pair)]
        self.own = self.chain(self.profile())

    def profile(self, changes: Sequence[str] = ()) -> Profile:
        """Return the training stack with changes."""
        return load(self._train, [*self._fixed, *changes])

    def chain(self, profile: Profile) -> Chain:
        """Return the steps of a stack from a file's bytes to the network's input."""
        return front_end(self._card, profile, choose(profile))

    def placing(self, profile: Profile) -> Any:
        """Return a JSON value of where a stack puts images in the network's input."""
        return self._card.modality.placing(profile, self._card.spec).identity()

    def of(self, column: str) -> tuple[str, ...]:
        """Return the options of a column; the training stack's own is added where it is missing.

        Raises:
            UserError: there is no such column, or it changes nothing before the network.
        """
        chains = {
            name: self.chain(self.profile(self._changes(column, name)))
            for name in self._column(column)
        }
        if all(chain == self.own for chain in chains.values()):
            raise UserError(f"{self._where}: {column} changes no pixels, so it cannot be mixed")
        own = () if self.own in chains.values() else (TRAIN,)
        return (*own, *chains)

    def combined(self, options: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Profile]]:
        """Yield every combination by its name."""
        for names in itertools.product(*options.values()):
            pairs = zip(options, names, strict=True)
            changes = [line for column, name in pairs for line in self._changes(column, name)]
            yield "/".join(names) or TRAIN, self.profile(changes)

    def _column(self, name: str) -> Mapping[str, Option]:
        if name not in self._columns:
            raise UserError(f"{self._where}: {unknown('column', name, self._columns)}")
        return self._columns[name]

    def _changes(self, column: str, name: str) -> list[str]:
        known = self._column(column)
        if name == TRAIN and name not in known:
            return []
        if name not in known:
            raise UserError(f"{self._where}: {column}: {unknown('option', name, known)}")
        return overrides(known[name])


def _require(chains: Any) -> None:
    """Make sure that every library can be opened.

    Raises:
        MissingLibrary: with a line for each that cannot.
    """
    choices = [getattr(recipe, "choice", None) for chain in chains for recipe in chain.recipes]
    problems = []
    for backend in {
        choice.backend.name: choice.backend for choice in choices if choice is not None
    }.values():
        try:
            registry.require(backend)
        except MissingLibrary as error:
            problems.append(str(error))
    if problems:
        raise MissingLibrary("\n".join(problems))


class MixedDataset:
    """Images with their labels for ``torch.utils.data.DataLoader``, which takes any such object.

    Args:
        dataset: labelled images, for example of :func:`simulator.data.folder.load_folder`.
        mixed: makes the inputs.

    Attributes:
        epoch: the number of the draw; set it before each epoch. Workers that outlive an epoch
            (``persistent_workers``) do not see it change.
    """

    def __init__(self, dataset: Dataset, mixed: MixedPreprocessing) -> None:
        self.items, self.mixed, self.epoch = dataset.items, mixed, 0

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[F32, Any]:
        """Return an input and its label."""
        item = self.items[index]
        return self.mixed(item.path, self.epoch), item.truth

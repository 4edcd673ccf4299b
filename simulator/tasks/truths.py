"""Where the samples of a task come from, and what people have annotated of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, ClassVar

from simulator.contract.warp import Size, WarpOf
from simulator.data.address import Root
from simulator.data.card import find_card, read_card
from simulator.data.folder import IMAGES, Dataset, Files
from simulator.data.source import samples_of
from simulator.errors import DataError, UserError
from simulator.tasks.settings import Network


class Truths:
    """The part of a task that opens samples and knows their truths; its attributes are a task's."""

    name: ClassVar[str]
    network: Network

    def load(self, path: Root, files: Files = IMAGES) -> Dataset:
        """Open the samples of a data card, or those that a path or a URL has.

        Args:
            path: a data card, a folder with a ``data.yaml``, or what one of
                :data:`simulator.data.source.SOURCES` takes.
            files: the files that are samples.

        Raises:
            DataError: they cannot be used, or are annotated for another task.
        """
        found = find_card(path)
        if found is None:
            return self.without_card(path, files)
        card = read_card(found)
        if card.task != self.name:
            raise DataError(f"{found}: task: {card.task}, and the model is for {self.name}")
        return card.load(self.network.labels, files, self.truth_of)

    def without_card(self, root: Root, files: Files) -> Dataset:
        """Open samples that have no data card; by default nobody has annotated them.

        Raises:
            DataError: they cannot be used.
        """
        return samples_of(root, files)

    def truth_of(self, text: str, where: str) -> Any:
        """Return the truth that a text beside a sample says, of tasks whose truth is one text.

        Args:
            text: as it is written.
            where: begins messages.

        Raises:
            DataError: it says none.
        """
        raise DataError(f"{where}: a text is no truth for {self.name}; choose another format")

    def example(self) -> Dataset:
        """Return the built-in samples.

        Raises:
            UserError: there are none for this task.
        """
        raise UserError(f"there are no built-in samples for {self.name}; give --data")

    def stamp(self, truth: Any) -> Any:
        """Return what tells one truth from another; JSON, and None where there is no truth.

        By default a string, a number or a boolean is its own stamp, and of other JSON it is a
        digest.
        """
        if truth is None or isinstance(truth, (str, int, float)):
            return truth
        text = json.dumps(truth, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def moved(self, truth: Any, warp: WarpOf, size: Callable[[], Size]) -> Any:
        """Return a truth that follows the pixels of its image; only where :attr:`in_pixels`.

        Args:
            truth: what people have annotated; not None.
            warp: where the pixels of an image go.
            size: returns the image's rows and columns.
        """
        raise NotImplementedError(f"{self.name} is not about places in an image")

    def placed(self, truth: Any, placement: Any) -> Any:
        """Return a truth in pixels of the network's input; only where :attr:`in_pixels`.

        Args:
            truth: what people have annotated; not None.
            placement: how the sample lies in the network's input.

        Raises:
            SampleError: this sample's truth cannot be used.
        """
        raise NotImplementedError(f"{self.name} is not about places in an image")

    def opened(self, truth: Any, source: Any = None) -> Any:
        """Return a truth ready for :meth:`record` and :meth:`change`; called once a sample.

        Args:
            truth: what people have annotated.
            source: the sample as its modality read it; None where only the truth is known.

        Raises:
            SampleError: this sample's truth cannot be used.
        """
        return truth

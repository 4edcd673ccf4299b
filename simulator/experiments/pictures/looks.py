"""The gallery of a report: the worst flips, filled up with the first samples."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from simulator.contract import ImageWriter
from simulator.experiments.pictures.decoded import writer
from simulator.experiments.pictures.pictures import Finished, Pictures
from simulator.results.store import RunWriter

IMAGES = 4
"""How many samples are shown."""
WORST, FIRST = "worst flip", "one of the first {unit}s"
"""Why a sample is shown."""
Seen = TypeVar("Seen")
Look = tuple[str, str, Seen]
"""Name, reason and data of a sample that is shown."""


class Looks(Pictures, Generic[Seen]):
    """A gallery, of images or of sounds.

    Attributes:
        kind: of its entries in the summary.
    """

    name = "look"
    first = worst = IMAGES
    kind: ClassVar[str]

    @abstractmethod
    def empty(self, *notes: str) -> Seen:
        """Return the data of a sample of which nothing could be kept."""

    @abstractmethod
    def write(
        self, shown: Sequence[Look[Seen]], files: ImageWriter, workers: int, run: RunWriter
    ) -> Sequence[Any]:
        """Write pictures and sounds to the run; return their entries in the summary.

        Args:
            shown: name, reason and data of each sample.
            files: writes PNG files.
            workers: how many samples are drawn at once.
            run: the files are written to it.
        """

    def lost(self, why: str) -> Seen:
        """Return data with a note alone."""
        return self.empty(f"the rest is not shown: {why}")

    def draw(self, finished: Finished) -> None:
        """Write the gallery."""
        session, seen = finished.session, finished.seen
        session.show.say("drawing the gallery")
        files = writer()
        if files is None:
            finished.warn("the gallery is not drawn: no installed backend writes PNG")
            return
        whys = {flip["sample"]: WORST for flip in finished.summary["worst_flips"]}
        for item in finished.ran[:IMAGES]:
            whys.setdefault(item.name, FIRST.format(unit=session.card.modality.unit))
        looks = [
            (name, why, seen[name] if name in seen else self.empty())
            for name, why in list(whys.items())[:IMAGES]
        ]
        entries = self.write(looks, files, session.workers, finished.run)
        finished.summary["pictures"] += [{"kind": self.kind, **entry} for entry in entries]


def stem_of(name: str, unit: str) -> str:
    """Return a sample's name as that of a file; *unit* where nothing of it is left."""
    stem = name.rpartition("/")[2].rpartition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip(".")[:60] or unit

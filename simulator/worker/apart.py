"""What reads files that may hold code, in workers that are confined."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from simulator.contract import Differentiable, Exporter, Offer, Options, Pull
from simulator.contract.gradients import F32
from simulator.contract.stage import STAGES
from simulator.worker import remote
from simulator.worker.client import Worker

Hired = Callable[[Path], AbstractContextManager[Worker]]


class ConfinedExporter(Exporter):
    """An exporter in a worker of its own, which may write beside its target only.

    Args:
        hired: starts the worker; it may write to a folder.
        number: of the offer among those of the backend.
        offer: it has the real exporter.
        options: as for the real one.
    """

    def __init__(self, hired: Hired, number: int, offer: Offer, options: Options) -> None:
        super().__init__(options)
        self._hired, self._number, self._offer = hired, number, offer

    def export(self, source: Path, target: Path) -> None:
        """Convert a file."""
        spec = STAGES[self._offer.stage]
        with self._hired(target.parent) as worker:
            made = remote.make(worker, spec, self._number, self._offer.make, self.options)
            made.export(source, target)


class ConfinedGradients(Differentiable):
    """Gradients in a worker, which goes forward once more for each way back.

    Args:
        worker: it is confined.
        number: of the offer among those of the backend.
        offer: it has the real implementation.
        artifact: the model file.
        options: as for the real one.
    """

    def __init__(
        self, worker: Worker, number: int, offer: Offer, artifact: Path, options: Options
    ) -> None:
        self._remote = remote.Implementation(worker, offer.stage, number, artifact, options)
        super().__init__(artifact, options)

    def _open(self, artifact: Path) -> None:
        self._remote.call("artifact")  # opens it: its errors come now

    def close(self) -> None:
        """Free what the worker holds."""
        self._remote.close()

    def _at(self, values: F32) -> tuple[F32, Pull]:
        def pull(cotangent: F32) -> F32:
            found: F32 = self._remote.call("pulled", values, cotangent)
            return found

        scores: F32 = self._remote.call("differentiable_scores", values)
        return scores, pull

    def _scores(self, values: F32) -> F32:
        found: F32 = self._remote.call("scores", values)
        return found

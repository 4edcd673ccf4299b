"""Classification of sounds; what the answers mean is as in classification."""

from __future__ import annotations

from simulator.data.folder import Dataset
from simulator.tasks.classification.task import Classification
from simulator.tasks.task import Task


class AudioClassification(Classification):
    """One class for each sound; its truth is a class index, or None."""

    name = "audio_classification"
    unit = "sound"

    def example(self) -> Dataset:
        """Refuse: the built-in images are no sounds.

        Raises:
            UserError: always.
        """
        return Task.example(self)

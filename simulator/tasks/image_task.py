"""What tasks share whose answers lie in the pixels of an image."""

from __future__ import annotations

from simulator.errors import ModelError
from simulator.tasks.task import Task


class ImageTask(Task):
    """A task for images only: boxes, masks."""

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the network's input.

        Raises:
            ModelError: the card's input is not an image.
        """
        try:
            return self.network.input.height, self.network.input.width
        except AttributeError:
            raise ModelError(
                f"{self.name} needs a model of images: an input of a height and a width"
            ) from None

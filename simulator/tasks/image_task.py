"""What tasks share whose answers lie in the pixels of an image."""

from __future__ import annotations

from typing import Any

from simulator.errors import ModelError
from simulator.profile.section import Section
from simulator.tasks.task import Task

Choices = dict[str, Any]
"""The fields of a section of a card, with a profile's in their place."""


class ImageTask(Task):
    """A task for images only: boxes, masks."""

    @property
    def size(self) -> tuple[int, int] | None:
        """Rows and columns of the network's input; None where it takes any.

        Raises:
            ModelError: the card's input is not an image.
        """
        try:
            height, width = self.network.input.height, self.network.input.width
            return None if height == "free" else (height, width)
        except AttributeError:
            raise ModelError(
                f"{self.name} needs a model of images: an input of a height and a width"
            ) from None


def merged(card: Section | None, profile: Section) -> Choices:
    """Return the values of a card's section, each replaced where the profile has its own."""
    asked = {key: value for key, value in profile.model_dump().items() if value != "model"}
    return {**(card or type(profile)()).model_dump(), **asked}

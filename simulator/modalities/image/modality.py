"""Images: files of every format of ``simulator.image_formats``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from simulator import registry
from simulator.contract import U8, Array, Encoded, Stage
from simulator.contract.description import Description, Preprocessing
from simulator.contract.encoded import read_image
from simulator.contract.image_formats import IMAGE_FORMATS, suffixes
from simulator.contract.recipe import Recipe
from simulator.errors import UserError
from simulator.modalities import constants
from simulator.modalities.image import front_end
from simulator.modalities.image.card import ImageCard, geometry_of, sized, tensor_shape, tried_side
from simulator.modalities.image.cropping import Cut
from simulator.modalities.image.geometry import Geometry, Placement
from simulator.modalities.image.orientation import UPRIGHT
from simulator.modalities.image.sections import ImageSpec, image_spec
from simulator.modalities.image.shown import of_input
from simulator.modalities.image.steps import Refeed, target
from simulator.modalities.image.taken import fed_otherwise, left_to_card, taken
from simulator.modalities.modality import Feed, Modality
from simulator.places import Where, moment_of
from simulator.profile.document import Values
from simulator.profile.implementations import Choices
from simulator.profile.postprocess import Postprocess
from simulator.profile.profile import Profile


@dataclass(frozen=True)
class ImagePlacing:
    """Gives the position of an image for one stack.

    The tensors of a recorded stack are assumed to follow its profile, too.

    Attributes:
        geometry: resize, crop and padding.
        exif: ``apply`` or ``ignore``.
        drop: whether an odd last row and column is dropped.
        even: whether images are resized to even sizes.
    """

    geometry: Geometry
    exif: str
    drop: bool
    even: bool

    def identity(self) -> Any:
        """Return all attributes; equal rules have equal identities."""
        return [self.geometry.identity(), self.exif, self.drop, self.even]

    @property
    def any_size(self) -> bool:
        """Whether images differ in the size of the network's input."""
        return self.geometry.network is None

    def __call__(self, source: Encoded) -> Placement:
        """Return the position of an image.

        Raises:
            SampleError: the resized image would be too large, for the network too, or nothing is
                left to resize.
        """
        orientation = source.orientation if self.exif == "apply" else UPRIGHT
        return _placement(self, *source.size(self.exif), orientation)


@lru_cache(maxsize=1024)
def _placement(rules: ImagePlacing, height: int, width: int, orientation: int) -> Placement:
    """The position of an image of a size; many images of a data set have the same size."""
    dropped = (height & 1, width & 1) if rules.drop else (0, 0)
    top, left, bottom, right = rules.geometry.cut(height - dropped[0], width - dropped[1])
    cut = Cut(top, left, bottom + dropped[0], right + dropped[1])
    seen = height - cut.rows, width - cut.columns
    placement = rules.geometry.placement(seen, target(rules.geometry, *seen, rules.even))
    return replace(placement, cut=cut, orientation=orientation)


class ImageModality(Modality):
    """One image a sample; its source is an :class:`Encoded`."""

    name = "image"
    unit = "image"
    pictures = (
        "simulator.experiments.pictures.flips:flips",
        "simulator.experiments.pictures.gallery:gallery",
    )
    canvas = "simulator.experiments.pictures.decoded:pictures"
    levels = "levels"
    Spec = ImageSpec
    Card = ImageCard
    tried_with = "simulator.testing.image_specimen:write"

    @property
    def suffixes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of all image formats."""
        return suffixes()

    def read(self, name: str, path: Where) -> Encoded:
        """Read one image file and check its header."""
        return read_image(name, path)

    def feeds(self, card: Any) -> tuple[Feed, ...]:
        """Return the tensor, float32 or uint8 in the layout, its mask, and constants."""
        spec = card.input
        shape, remedy, tried = tensor_shape(spec), "", 1
        if spec.is_free:
            remedy = "; write geometry.input_size: {kind: fixed, sizes: …}"
            tried = tried_side(spec)
        image = Feed(spec.name, np.dtype(spec.dtype), shape, spec.layout, 0, tried, remedy)
        others = constants.feeds(spec.constants)
        if not spec.mask:
            return (image, *others)
        sides = shape[2:] if spec.layout == "NCHW" else shape[1:3]
        mask = Feed(spec.mask, np.dtype(np.int64), (1, *sides), "NHW", 1, tried, remedy)
        return (image, mask, *others)

    def sized(self, profile: Profile, card: Any, one_size: bool) -> tuple[Any, ...]:
        """Return the card with the sizes of a profile; see :func:`sized`."""
        return sized(profile, card, one_size)

    def in_force(self, profile: Profile, card: Any) -> Mapping[str, Values]:
        """Return the size of the network's input."""
        made = geometry_of(profile, card)
        if made.network:
            return {"input_size": {"kind": "fixed", "sizes": [list(made.network)]}}
        return {"input_size": {"kind": "rect", "multiple_of": made.multiple_of}}

    def taken(
        self, profile: Profile, card: Any, name: str, said: Description, own: Preprocessing | None
    ) -> tuple[Profile, Any, list[str]]:
        """Leave to a model file what its graph does: mean and std, channel order, layout."""
        return taken(profile, card, name, said, own)

    def refed(self, card: Any, other: Any) -> tuple[Recipe, ...]:
        """Return the way back to pixels, and from there to the other input."""
        one, two = card.input, other.input
        form = [
            (kind.order, kind.layout, kind.dtype, kind.top, tuple(kind.mean), tuple(kind.std))
            for kind in (one, two)
        ]
        return () if form[0] == form[1] else (Refeed(*form),)

    def left_to_card(self, profile: Profile) -> Profile:
        """Leave mean, std and the order of the channels to the card."""
        return left_to_card(profile)

    def fed_otherwise(self, card: Any) -> Iterable[tuple[str, Any]]:
        """Yield the other order of channels, pixels as they are, and pixels / 255."""
        return fed_otherwise(card)

    def front_end(self, profile: Profile, choices: Choices, card: Any) -> list[Recipe]:
        """Return the steps from the file's bytes to the tensor."""
        steps = front_end.front_end(profile, choices, card)
        return [*steps, *constants.beside(card.input.name, card.input.constants)]

    def placing(self, profile: Profile, card: Any) -> ImagePlacing:
        """Return the function that gives an image's position in the tensor."""
        color = image_spec(profile).color
        return ImagePlacing(
            geometry_of(profile, card),
            image_spec(profile).decode.exif or "ignore",
            color.format != "rgb" and color.odd_size == "drop",
            front_end.in_pairs(profile),
        )

    def remarks(
        self, placing: Any, files: Sequence[Where], choices: Choices, format: str | None
    ) -> list[str]:
        """Say how many files the decoder does not read, by their names, and which decoders do.

        Raises:
            UserError: it reads none of them.
        """
        decoder = choices.get(Stage.DECODE)
        if Stage.VIDEO in choices and format is None:
            files = [file for file in files if moment_of(file) is None]
        if decoder is None or not files:
            return []
        names = {suffix: one.name for one in IMAGE_FORMATS for suffix in one.suffixes}
        formats = Counter(format or names.get(file.suffix.lower()) for file in files)
        lacks = {one for one in formats if one and one not in decoder.offer.make.reads}
        if not lacks:
            return []
        count = sum(formats[one] for one in lacks)
        readers = "; ".join(
            f"{one}: {' or '.join(registry.readers(one) or ['none'])}" for one in sorted(lacks)
        )
        told = (
            f"{decoder.backend.name} cannot read {count:,} of {len(files):,} files, these backends "
            f"can: {readers}"
        )
        if count == len(files):
            raise UserError(told)
        return [told]

    def postprocess(self, profile: Profile, card: Any) -> Postprocess:
        """Return the profile's postprocessing; fields that its geometry ignores are neutral."""
        asked, geometry = profile.spec.postprocess, geometry_of(profile, card)
        neutral = {}
        if geometry.kind not in ("letterbox", "short_side_crop"):
            neutral["scale"] = "resized"
        if geometry.kind != "letterbox" or geometry.position != "center":
            neutral["offset"] = "integer"
        unletterbox = asked.unletterbox.model_copy(update=neutral)
        return asked.model_copy(update={"unletterbox": unletterbox})

    def scale(self, profile: Profile, card: Any) -> Array:
        """Return how many levels of 0-255 a difference of 1 in the tensor is, per channel."""
        return front_end.deviations(profile, card)

    def shown_input(self, profile: Profile, card: Any) -> Callable[[Array], U8]:
        """Return what undoes a profile's normalization."""
        mean_std = front_end.statistics(profile, card.input)
        return partial(of_input, card=card.input, mean_std=mean_std)

    def memory(self, source: Encoded) -> int:
        """Return the bytes of one more decoded image, which libraries need while they work."""
        return 3 * source.width * source.height

    def sizes(self, source: Encoded) -> dict[str, int]:
        """Return columns, rows and bytes of the file."""
        return {"width": source.width, "height": source.height, "bytes": len(source.data)}


IMAGE = ImageModality()

"""Steps on an image, as every tool has them, and the profile that says the same.

An importer follows a tool's list of steps with :func:`follow`; each step of the tool becomes a call
of :class:`ImageSteps`. What a profile cannot express is refused at the key that says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from simulator.importers import values
from simulator.importers.draft import Draft, Normalization, Order, together
from simulator.importers.keys import Keys
from simulator.importers.resizing import Kernel, Resize, Rounding, Scaling, Size
from simulator.modalities.image.geometry import ZERO

_LINEAR = ("bilinear", "bicubic", "area", "box", "hamming", "lanczos", "lanczos3", "lanczos4")


@dataclass(slots=True)
class ImageSteps:
    """The effect of the steps so far.

    Attributes:
        draft: the profile.
        tool: whose rules of geometry these are, for the evidence.
        order: the order of the channels.
        turned: where that order comes from.
        normalization: what was done to the pixels, on 0-255, in that order.
    """

    draft: Draft
    tool: str
    order: str
    turned: list[str]
    normalization: Normalization = field(default_factory=Normalization)
    _resize: Resize | None = None
    _done: bool = False
    _multiple: tuple[int, int | str, str] = (1, 0, "nothing is padded")
    _zeros: int | None = None

    @property
    def size(self) -> Size:
        """The size that the resize gives, or fits into; (0, 0) before it, or not known."""
        return self._resize.size if self._resize else (0, 0)

    @property
    def is_resized(self) -> bool:
        """Whether a step has resized."""
        return self._resize is not None

    @property
    def varies(self) -> bool:
        """Whether the size after the steps so far depends on the image."""
        return self._resize is not None and not self._done and self._resize.scaling != "squash"

    @property
    def keeps(self) -> bool:
        """Whether the ratio of sides stays, and the size follows from it, turned or not."""
        last = self._resize
        square = last is not None and last.scaling == "fit" and last.size[0] == last.size[1]
        return not self._done and last is not None and (square or last.scaling == "keep_ratio")

    def reverse(self, origin: str) -> None:
        """Reverse the channels."""
        self.order = "bgr" if self.order == "rgb" else "rgb"
        self.turned.append(origin)
        self.normalization.reverse()

    def normalize(self, mean: Sequence[Fraction], std: Sequence[Fraction], *origins: str) -> None:
        """Subtract a mean and divide by a std, in the unit and order of the pixels so far."""
        self.normalization.then(mean, std, *origins)

    def statistics(
        self, keys: Keys, names: str, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        """Normalize by the mean and std of two keys, which have defaults."""
        said = f"{mean} is the default", f"{std} likewise"
        found = keys.statistics(names, mean, std)
        self.normalize(*found, *map(keys.origin, names.split(), said))

    def resize(
        self,
        keys: Keys,
        key: str,
        scaling: Scaling,
        size: Size | None,
        kernel: Kernel,
        rounding: Rounding = "down",
        how: str = "",
    ) -> None:
        """Resample.

        Args:
            keys: of the step.
            key: the key that says the size.
            scaling: what *size* is.
            size: height and width; the short side twice; the box to fit into; or the limits of
                the short and of the long side. None: that of the network, which the document does
                not say.
            kernel: with what.
            rounding: of the side that follows from the other.
            how: the key that says the kind of scaling, if there is one.
        """
        draft = self.draft
        if self._resize or self._done:
            keys.refuse(key, "a resize, crop or padding comes before it; a profile resizes once")
            return
        if size == (0, 0):
            return  # it was refused
        kind, source = kernel.kind, kernel.source
        if self.normalization.origins and kernel.interpolation in _LINEAR:
            kind = "assumed"
            source += "; of normalized numbers there; here of bytes, the same but for rounding"
        draft.claim("resize", kind, source)
        self._resize = Resize(keys, key, scaling, size or (0, 0), rounding, how)
        draft.whole |= {"resize", "geometry"}
        draft.write("resize", "backend", kernel.backend, kernel.library)
        draft.write("resize", "interpolation", kernel.interpolation, kernel.origin)
        for name, value in kernel.fields.items():
            draft.write("resize", name, value, kernel.source)
        draft.write("resize", "domain", "rgb", "the decoder gives no YUV")
        keys.tell(key, how)

    def crop(self, keys: Keys, key: str, size: Size, start: Rounding) -> None:
        """Crop the center."""
        last, draft = self._resize, self.draft
        if last is None or self._done or last.scaling in ("fit", "keep_ratio"):
            keys.refuse(key, "a profile crops once, after a resize of the short or of both sides")
            return
        if max(size) == 0 or (last.scaling == "squash" and size == last.size):
            return
        side = last.size[0]
        if last.size[0] != last.size[1]:
            last.keys.refuse(last.key, "a crop after a resize to two sizes; a profile has one")
        elif max(size) > side:
            keys.refuse(key, f"larger than the short side of {side}; a profile's crop neither "
                        "pads nor enlarges")  # fmt: skip
        else:
            self._done = True
            sides, rounding = last.cropped(start)
            if rounding is None:
                why = f"sides rounded {sides} and starts {start}: no profile rounds so"
                keys.refuse(key, why)
                return
            kind = "squash_crop" if last.scaling == "squash" else "short_side_crop"
            draft.write("geometry", "kind", kind, last.origin)
            said = f"{self.tool}: sides are rounded {sides}, the start of the crop {start}"
            draft.write("geometry", "rounding", rounding, said.replace("_", " "))
            draft.write("geometry", "short_side", side, last.origin)
            draft.claim("geometry", "emulated", f"{self.tool}'s resize and crop, rebuilt")
            draft.network(size, keys.origin(key))

    def pad(
        self, keys: Keys, key: str, size: Size, level: Sequence[Fraction], position: str, why: str
    ) -> None:
        """Pad what was resized to fit.

        Args:
            keys: of the step.
            key: the key that says the size; what cannot be said is refused there.
            size: height and width.
            level: of each channel, in the unit and order of the pixels so far.
            position: ``center`` or ``top_left``.
            why: where the level comes from.
        """
        last, draft = self._resize, self.draft
        if last is not None and last.scaling == "squash" and last.size == size:
            return  # nothing is padded
        if last is None or self._done or last.scaling != "fit" or size != last.size:
            keys.refuse(key, "a profile pads once, after a resize that keeps the ratio of sides "
                        "and fits into the same size")  # fmt: skip
            return
        pixel = self._padding(keys, key, level, why)
        if pixel is None:
            return
        self._done = True
        draft.write("geometry", "kind", "letterbox", last.origin)
        draft.write("geometry", "rounding", *last.rule(self.tool))
        draft.write("geometry", "position", position, keys.origin(key))
        draft.write("geometry", "value", pixel, why)
        draft.claim("geometry", "emulated", f"{self.tool}'s resize and padding, rebuilt")
        draft.network(size, keys.origin(key))

    def pad_to_multiple(
        self, keys: Keys, key: str, divisor: int, level: Sequence[Fraction], why: str
    ) -> None:
        """Pad what was resized with its ratio of sides, right and below.

        Args:
            keys: of the step.
            key: the key that says the divisor; what cannot be said is refused there.
            divisor: of which both sides become multiples.
            level: of each channel, in the unit and order of the pixels so far.
            why: where the level comes from.
        """
        if self._multiple[0] != 1:
            keys.refuse(key, "a profile pads once")
            return
        pixel = self._padding(keys, key, level, why)
        if pixel is not None:
            said = [keys.origin(key)] if key in keys else []
            self._multiple = divisor, pixel, together(*said, why)

    def _padding(
        self, keys: Keys, key: str, level: Sequence[Fraction], why: str
    ) -> int | str | None:
        """Return the gray level of a padding, or zero; None where it was refused."""
        made = self.normalization
        gray = {one * s + m for one, s, m in zip(level, made.std, made.mean, strict=True)}
        pixel = round(float(min(gray)))
        if all(abs(one - pixel) <= Fraction(1, 1000) for one in gray) and 0 <= pixel <= 255:
            return pixel
        if not any(level):
            self._zeros = len(made.origins)
            return ZERO
        shown = ", ".join(f"{float(one):g}" for one in sorted(gray))
        keys.refuse(key, f"pads with {shown} on 0-255; a profile pads with one gray level, a whole "
                    f"number, or with 0 after the normalization ({why})")  # fmt: skip
        return None

    def _keep_ratio(self, last: Resize) -> None:
        """Write a geometry after which images differ in size."""
        draft, (step, value, why) = self.draft, self._multiple
        draft.write("geometry", "kind", "keep_ratio", last.origin)
        draft.write("geometry", "rounding", *last.rule(self.tool))
        draft.write("geometry", "shortest", last.size[0], last.origin)
        draft.write("geometry", "longest", last.size[1], last.origin)
        draft.write("geometry", "multiple_of", step, why)
        draft.write("geometry", "value", value, why)
        draft.claim("geometry", "emulated", f"{self.tool}'s resize, rebuilt")
        draft.network(("free", "free"), last.origin)

    def finish(self, order: Order, none: Keys) -> None:
        """Write what follows from all steps.

        Args:
            order: of the arithmetic.
            none: where to say that no step resizes.
        """
        draft, last = self.draft, self._resize
        if last is None:
            none.problem("type", "no step resizes; a profile resizes every image to one size")
            return
        if not self._done and last.scaling == "squash":
            draft.write("geometry", "kind", "squash", last.origin)
            if last.size != (0, 0):
                draft.network(last.size, last.origin)
        elif self.keeps:
            self._keep_ratio(last)
        elif not self._done and last.scaling == "fit":
            why = "the size of the network's input varies by image; a profile needs a padding"
            last.keys.refuse(last.key, f"{why} to one size after it")
        elif not self._done:
            why = "the short side alone says no largest size; a profile needs a crop after it"
            last.keys.refuse(last.key, f"the size of the network's input varies by image; {why}")
        if self._zeros not in (None, len(self.normalization.origins)):
            last.keys.refuse(last.key, "a padding stands between two normalizations")
        self.finish_pixels(order)

    def finish_pixels(self, order: Order) -> None:
        """Write the order of the channels and the arithmetic alone, of a list without a resize."""
        made = self.normalization
        self.draft.color(self.turned[0], self.order, together(*self.turned))
        said = together(*made.origins or ["no step normalizes; the model may do it"])
        self.draft.normalize(made.mean, made.std, order, lambda _: said)


Follow = Callable[[ImageSteps, Keys], None]
"""Takes the keys of one step."""


def follow(
    steps: ImageSteps,
    each: Sequence[tuple[str, Keys]],
    kinds: Mapping[str, Follow],
    aside: Mapping[str, str],
    named: tuple[str, ...] = ("type",),
) -> None:
    """Follow the steps of a tool in their order; the first that cannot be said ends it.

    Args:
        steps: what they do.
        each: the name and keys of every step.
        kinds: how each kind of step is followed.
        aside: kinds of steps that change no pixel, with the reason.
        named: keys that hold the name of a step.
    """
    problems = steps.draft.problems
    for name, keys in each:
        if name in aside:
            said = values.show({key: one for key, one in keys.values.items() if key not in named})
            near = keys.near.removesuffix(f"{name}.")
            steps.draft.aside.append(f"{near}{name}{said}: {aside[name]}")
            continue
        step = kinds.get(name)
        if step is None:
            offered = ", ".join(kinds)
            keys.prefix = keys.prefix.removesuffix(f"{name}.")
            keys.problem(name, f"a profile cannot express this step; these are known: {offered}")
            return
        keys.skip(*named)
        step(steps, keys)
        if not problems:
            keys.rest(named=named)
        if problems:  # what follows would only repeat it
            return

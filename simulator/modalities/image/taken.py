"""What a stack feeds to a model file that is opened as it is, whose graph may normalize itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simulator.contract import Array
from simulator.contract.description import Description, Preprocessing, Value
from simulator.errors import ModelError
from simulator.modalities.image.card import ImageCard, ImageInput, geometry_of
from simulator.modalities.image.geometry import ZERO
from simulator.modalities.image.sections import image_spec
from simulator.profile.profile import Profile

NEAR = 0.01
"""How far a mean (as a share of a std) and a std of a file may be from the card's."""
_WIDER = 3.0
"""How many times as wide as what the card makes a quantized input's range may be, or as narrow."""
_BYTES, _NOTHING = 3.0, 1e-6
"""Above the one, a mean or a scale is counted in 0-255, not in 0-1; below the other, it is 0."""
Extra = tuple[Array, Array, bool]
"""A mean, what is divided by, and whether the channels are reversed."""


def taken(
    profile: Profile, card: ImageCard, name: str, said: Description, own: Preprocessing | None
) -> tuple[Profile, ImageCard, list[str]]:
    """See :meth:`simulator.modalities.modality.Modality.taken`."""
    found = said.preprocessing
    if found and found.refused:
        raise ModelError(
            f"{name}: its graph {found.refused}, which a stack does before it; export the network "
            "without this step, or record what it gives (docs/recordings.md)"
        )
    if len(said.inputs) != 1 or len(said.inputs[0].shape) != 4:
        return profile, card, []
    (value,) = said.inputs
    update: dict[str, object] = {}
    layout = _layout(value, card.input.layout)
    if layout != card.input.layout:
        update["layout"] = layout
    lines: list[str] = _out_of_range(card.input, name, value)
    extra = _beyond(found, own)
    whole = value.dtype == "uint8" and not value.scale
    if extra or whole:
        geometry = geometry_of(profile, card)
        if geometry.value == ZERO and geometry.multiple_of != 1:
            raise ModelError(
                f"{name}: normalizes by itself, so no stack can pad with zeros after it; export "
                "the network without this step, or write a gray level: geometry.value"
            )
        profile = _left_to_file(profile, card.input, name, extra or _identity())
        values, told = _fed(card.input, name, extra or _identity(), whole)
        order = image_spec(profile).color.order
        if "order" in values and order != "model":  # the profile says what is fed
            told = [line for line in told if not line.endswith(f"feeds {values['order']}")]
            told.append(f"{name} reverses the channels itself, and the profile feeds {order}")
            del values["order"]
        update |= values
        lines += told
    if not update:
        return profile, card, lines
    made = card.model_copy(update={"input": card.input.model_copy(update=update)})
    return profile, made, lines


def _identity() -> Extra:
    return np.zeros(3), np.ones(3), False


def _layout(value: Value, usual: str) -> str:
    """The layout of an input, by where its three channels stand."""
    channels = {layout for at, layout in ((1, "NCHW"), (3, "NHWC")) if value.shape[at] == 3}
    return channels.pop() if len(channels) == 1 else usual


def _out_of_range(card: ImageInput, name: str, value: Value) -> list[str]:
    """Say where the numbers that a quantized input can hold are not those that the card makes."""
    if not value.scale or value.dtype not in ("uint8", "int8"):
        return []
    least = np.iinfo(value.dtype).min
    held = (np.array([least, least + 255]) - value.zero) * value.scale
    made = np.array(
        [
            ((0 - np.array(card.mean)) / card.std).min(),
            ((card.top - np.array(card.mean)) / card.std).max(),
        ]
    )
    if 1 / _WIDER < np.ptp(held) / np.ptp(made) < _WIDER:
        return []
    return [
        f"{name} holds inputs from {held[0]:.4g} to {held[1]:.4g}, and the model card makes "
        f"{made[0]:.4g} to {made[1]:.4g}: mean and std may be in the file, or be others"
    ]


def _affine(found: Preprocessing | None) -> Extra:
    if found is None:
        return _identity()
    mean, std = (np.resize(np.array(one, np.float64), 3) for one in (found.mean, found.std))
    return mean, std, found.reversed


def _beyond(found: Preprocessing | None, own: Preprocessing | None) -> Extra | None:
    """Mean, std and reversal that a file has and the card's own file has not; None: nothing.

    The file's are its extra ones, then the network's own: ((x - m) / s - mean) / std.
    """
    mean, std, turned = _affine(found)
    own_mean, own_std, own_turned = _affine(own)
    s = std / own_std
    m = mean - own_mean * s
    reverses = turned != own_turned
    same = np.allclose(s, 1, rtol=1e-6) and np.allclose(m, 0, atol=1e-6)
    return None if same and not reverses else (m, s, reverses)


def _fed(
    card: ImageInput, name: str, extra: Extra, whole: bool
) -> tuple[dict[str, object], list[str]]:
    """The card's input as the file takes it, and what to say of it.

    The network wants (p - M) / S of pixels p, and the file makes (x - m) / s of what it is fed. A
    converter may fold s, and a reversal of the channels, into the weights of the first layer
    (OpenVINO does): so m says what x is counted in, and in which order.
    """
    m, s, reverses = extra
    scale = 255 / card.top
    mean, std = (np.array(one) * scale for one in (card.mean, card.std))
    arithmetic = not (np.allclose(s, 1) and np.allclose(m, 0))
    counted = np.abs(m).max() if np.abs(m).max() > _NOTHING else np.abs(s).max()
    top = 255 if whole or counted > _BYTES else 1
    m, s = m * 255 / top, s * 255 / top
    folded = np.allclose(s, 255 / top)
    turned = arithmetic and not _near(m, mean, std) and _near(m, mean[::-1], std)
    update: dict[str, object] = {"dtype": "uint8"} if whole else {}
    lines = []
    if arithmetic or whole:
        update |= {"top": top, "mean": [0.0] * 3, "std": [1.0] * 3}
        lines.append(
            f"{name} normalizes its input itself, so the stack feeds "
            f"{'pixels' if top == 255 else 'pixels / 255'} and does not"
            if arithmetic
            else f"{name} takes uint8 pixels as they are: the stack applies no mean and no std"
        )
    if reverses or turned:
        update["order"] = order = {"rgb": "bgr", "bgr": "rgb"}[card.order]
        if not arithmetic and not whole:
            update |= {"mean": card.mean[::-1], "std": card.std[::-1]}
        why = "reverses the channels itself" if reverses else "has the mean of reversed channels"
        lines.append(f"{name} {why}: the stack feeds {order}")
    if turned:
        mean, std = mean[::-1], std[::-1]
    if (arithmetic or whole) and not (_near(m, mean, std) and (folded or _same(s, std))):
        lines.append(
            f"{name} computes (x - {_numbers(m)}) / {_numbers(s)} of pixels x, and the model card "
            f"has {_numbers(mean)} and {_numbers(std)}: the network gets other numbers than in "
            "training"
        )
    return update, lines


def _near(mean: Array, other: Array, std: Array) -> bool:
    return bool(np.abs(mean - other).max() <= NEAR * np.abs(std).max())


def _same(std: Array, other: Array) -> bool:
    return np.allclose(std, other, rtol=NEAR)


def fed_otherwise(card: ImageCard) -> Iterator[tuple[str, ImageCard]]:
    """See :meth:`simulator.modalities.modality.Modality.fed_otherwise`."""
    flipped = {"rgb": "bgr", "bgr": "rgb"}[card.input.order]
    for order in (card.input.order, flipped):
        for top, std in ((card.input.top, None), (255, [1.0] * 3), (1, [255.0] * 3)):
            if card.input.dtype == "uint8" and std is not None:
                continue
            update: dict[str, object] = {"order": order}
            words = [f"color.order={order if order == flipped else 'model'}"]
            if std is not None:
                update |= {"top": top, "mean": [0.0] * 3, "std": [1.0] * 3}
                words += ["normalize.mean=[0,0,0]", f"normalize.std={std}".replace(" ", "")]
            made = card.input.model_copy(update=update)
            yield " --set STACK.".join(words), card.model_copy(update={"input": made})


def left_to_card(profile: Profile) -> Profile:
    """See :meth:`simulator.modalities.modality.Modality.left_to_card`."""
    asked = image_spec(profile)
    normalize = asked.normalize.model_copy(update={"mean": "model", "std": "model"})
    color = asked.color.model_copy(update={"order": "model"})
    spec = asked.model_copy(update={"normalize": normalize, "color": color})
    return replace(profile, spec=spec)


def _left_to_file(profile: Profile, card: ImageInput, name: str, extra: Extra) -> Profile:
    """Return a stack without a mean and std of its own, which the file applies.

    Raises:
        ModelError: the profile has others than the file.
    """
    asked = image_spec(profile).normalize
    if asked.mean == asked.std == "model":
        return profile
    m, s, _ = extra
    written = [
        np.array(own if one == "model" else one, np.float64)
        * (255 / card.top if one == "model" else 1)
        for one, own in ((asked.mean, card.mean), (asked.std, card.std))
    ]
    neutral = np.allclose(written[0], 0) and np.allclose(written[1], 1)
    twice = any(
        np.allclose(written[0], m * unit, atol=0.5) and np.allclose(written[1], s * unit, rtol=NEAR)
        for unit in (1, 255)
    )
    if not neutral and not twice:
        raise ModelError(
            f"{profile.where(('normalize', 'mean'))}: normalize: {name} normalizes its input "
            f"itself, by {_numbers(m)} and {_numbers(s)}; write mean: model, std: model to leave "
            "it to the file"
        )
    model = asked.model_copy(update={"mean": "model", "std": "model"})
    return replace(profile, spec=profile.spec.model_copy(update={"normalize": model}))


def _numbers(values: Array) -> str:
    same = np.allclose(values, values[0])
    shown = [f"{one:.5g}" for one in (values[:1] if same else values)]
    return shown[0] if same else f"[{', '.join(shown)}]"

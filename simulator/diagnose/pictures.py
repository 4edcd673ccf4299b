"""What the network of each side saw of the first sample that differs, as pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.contract import U8
from simulator.data.folder import Item
from simulator.diagnose.blame import Sample
from simulator.diagnose.parts import DEPLOY, TRAIN, Parts, input_of
from simulator.experiments.pictures.decoded import writer
from simulator.experiments.session import Session
from simulator.modalities.image.shown import thumbnail
from simulator.results.diagnose import InputPictures
from simulator.results.layout import LOOKS
from simulator.results.store import RunWriter

LONGEST = 224
"""Pixels of a picture's longer side."""


def inputs_shown(
    session: Session, parts: Parts, items: Sequence[Item], samples: Sequence[Sample], run: RunWriter
) -> InputPictures | None:
    """Write pictures of both inputs of the first sample that differs, as training's are shown.

    Returns:
        Their paths; None where no input differs, or one is no picture or not known.
    """
    card, draw = session.card, writer()
    show = card.modality.shown_input(parts.stacks[TRAIN].profile, card.spec)
    for item, sample in zip(items, samples, strict=False):
        train, deploy = (sample.get(input_of(side)) for side in (TRAIN, DEPLOY))
        if draw is None or show is None:
            return None
        if not (isinstance(train, np.ndarray) and isinstance(deploy, np.ndarray)):
            return None
        if np.array_equal(train, deploy):
            continue
        pictures = {TRAIN: show(train), DEPLOY: show(deploy)}
        if pictures[TRAIN].shape == pictures[DEPLOY].shape:
            pictures["difference"] = _difference(*pictures.values())
        paths = {name: f"{LOOKS}/{name}.png" for name in pictures}
        for name, pixels in pictures.items():
            run.write_file(paths[name], draw.png(thumbnail(pixels, LONGEST)[0]))
        return InputPictures(sample=item.name, **paths)
    return None


def _difference(train: U8, deploy: U8) -> U8:
    """The absolute difference, its largest levels white."""
    apart = np.abs(train.astype(np.int16) - deploy)
    return np.asarray(apart * (255 / max(1, int(apart.max()))), np.uint8)

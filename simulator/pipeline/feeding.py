"""What a stack feeds to its network: in which sizes and batches, and what a file does by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simulator.contract import Stage
from simulator.contract.model import of_shape, shape_words
from simulator.contract.model_format import ONNX
from simulator.errors import ModelError
from simulator.modalities.card import CardSpec
from simulator.modalities.modality import Feed
from simulator.model.artifact import of_one_size
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.profile import artifact
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile


def feeding(profile: Profile, choices: Choices, card: Card) -> tuple[Profile, CardSpec, list[str]]:
    """Return the stack and the content of the card that its front end is made of.

    Returns:
        Those that were given, where the simulator makes the model file; and what users should know.

    Raises:
        ModelError: the file takes what no stack can give.
    """
    own = artifact.own_file(profile)
    if own is None:
        return profile, card.spec, []
    before, said = None, own.description
    if card.format.name == ONNX:
        of_card = artifact.read(card.model).description
        before = of_card.preprocessing
        if said.postprocessing and not of_card.postprocessing:
            raise ModelError(
                f"{own.path.name} suppresses boxes in its graph ({', '.join(said.postprocessing)}) "
                f"and {card.model.name} does not, so they would be suppressed twice; export it "
                "without, or record its answers (docs/recordings.md)"
            )
    taken = card.modality.taken(profile, card.spec, own.path.name, said, before)
    # what feeds the network itself is asked for the file's type and layout, and left alone
    return (profile, taken[1], []) if Stage.FRONT_END in choices else taken


def in_sizes(
    card: Card, source: ModelFile, profile: Profile, choices: Choices, spec: CardSpec
) -> Sequence[CardSpec]:
    """Return a card's content for each network of one size that a stack has, or its only one.

    Raises:
        ModelError: the profile does not fit the card, or its sizes the network.
    """
    found: Sequence[CardSpec] = card.modality.sized(profile, spec, of_one_size(choices) is not None)
    if source.outputs and spec is card.spec and found[0] is not spec:
        feed = card.modality.feeds(found[0])[0].shape
        shapes = [one.shape for one in source.inputs.values()]
        port = next((one for one in shapes if len(one) == len(feed)), feed)
        if not of_shape(feed, port):
            raise ModelError(
                f"{profile.where(('geometry', 'input_size'))}: geometry.input_size: {card.model} "
                f"takes {shape_words(port)} only, and the stack gives {shape_words(feed)}; export "
                "it with a free height and width"
            )
    return found


def of_batch(card: Card, spec: CardSpec, size: int) -> list[Feed]:
    """Return the inputs of an inference of several samples.

    Args:
        card: the model card.
        spec: its content, or what is said of the network in its place.
        size: samples of an inference.

    Raises:
        ModelError: no batch of these inputs can be made.
    """
    feeds = card.modality.feeds(spec)
    if size == 1:
        return list(feeds)
    if any(feed.shape[:1] != (1,) or (None in feed.shape and not feed.remedy) for feed in feeds):
        shapes = (shape_words(feed.shape) if feed.shape else "one number" for feed in feeds)
        made = " and ".join(shapes)
        raise ModelError(
            f"runtime.batch: {card.path} takes {made}; a batch needs inputs with one row "
            "and one size for every sample: leave it out"
        )
    return [replace(feed, shape=(size, *feed.shape[1:])) for feed in feeds]

"""Opens a runtime once, where it will run, and reports what it takes, gives and has in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.contract import Array, Effective, Port
from simulator.contract.model import shape_words
from simulator.errors import MissingLibrary, ModelError, one_line
from simulator.modalities.modality import Feed
from simulator.model.artifact import Artifact
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.pipeline import in_force
from simulator.pipeline.batched import refuse_mixing
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.watchdog import limited
from simulator.profile.implementations import Choice

Shape = Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Looked:
    """What a runtime said when it was opened.

    Attributes:
        inputs: the runtime's name of each of the card's inputs; "" for one without a name.
        outputs: the shape of each output; None in it is a dimension that varies.
        effective: what is in force.
        lines: what is done to the tensor on its way in, in words.
        is_stateful: see :attr:`simulator.contract.Runtime.is_stateful`.
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, Shape]
    effective: Effective
    lines: tuple[str, ...] = ()
    is_stateful: bool = False


def look(
    runtimes: RuntimePool, choice: Choice, artifact: Artifact, feeds: Sequence[Feed], size: int = 1
) -> Looked:
    """Open a runtime in this process.

    Args:
        runtimes: it stays open there.
        choice: the runtime.
        artifact: the file that it opens.
        feeds: the inputs of one inference.
        size: samples of an inference; of several it is asked whether they stay apart.

    Raises:
        ModelError: it cannot open or run the file, takes other inputs, or mixes samples.
        MissingLibrary: it is not installed.
    """
    with runtimes.of(choice, artifact)() as runtime:
        inputs = _inputs(artifact, runtime.inputs, feeds)
        outputs = {port.name: port.shape for port in runtime.outputs}
        ports = {port.name: port for port in runtime.inputs}
        named = {inputs[name]: feed for feed in feeds if (name := feed.name or "") in inputs}
        probes = {name: ports[name].rounded(probe(feed)) for name, feed in named.items()}
        try:
            with limited(f"the first inference of {choice.backend.name}"):
                effective = runtime.effective(probes)
                if size > 1:
                    refuse_mixing(runtime, probes)
        except MissingLibrary:
            raise
        except Exception as error:  # a runtime may raise anything
            several = f" with batches of {size}" if size > 1 else ""
            raise ModelError(
                f"{choice.backend.name} cannot run {artifact.path}{several}: {one_line(error)}"
            ) from error
        is_stateful = runtime.is_stateful
        halves = any(port.dtype == np.float16 for port in ports.values())
    told = f"{artifact.path.name} takes float16, to which the tensor is rounded"
    in_use, lines = in_force.probed(choice, effective), (told,) if halves else ()
    return Looked(inputs, outputs, in_use, lines, is_stateful)


def probe(feed: Feed) -> Array:
    """Return an input of the right shape, with the size to try where samples differ."""
    shape = feed.of_one_size().shape
    return np.broadcast_to(np.array(feed.fill, feed.dtype), [side or 0 for side in shape]).copy()


def _inputs(artifact: Artifact, taken: Sequence[Port], feeds: Sequence[Feed]) -> dict[str, str]:
    """The runtime's name of each of the card's inputs; by position where names were lost.

    State that the runtime does not take is left out: it keeps it itself, or has none.
    """
    ports = {port.name: port for port in taken}
    feeds = [feed for feed in feeds if feed.name in ports or not feed.is_state]
    if len(feeds) == len(ports):
        known = all(feed.name in ports for feed in feeds)
        names = [feed.name if known else name for feed, name in zip(feeds, ports, strict=True)]
        pairs = [(feed, ports[str(name)]) for feed, name in zip(feeds, names, strict=True)]
        if all(port.accepts(probe(feed)) for feed, port in pairs):
            return {feed.name or "": port.name for feed, port in pairs}
    takes, made = (
        ", ".join(f"{one.dtype} {shape_words(one.shape)}" for one in side)
        for side in (taken, feeds)
    )
    remedy = next((feed.remedy for feed in feeds if None in feed.shape), "")
    raise ModelError(f"{artifact.path} takes {takes}; the model card gives {made}{remedy}")


def outputs_of(
    card: Card, source: ModelFile, artifact: Artifact, ports: Mapping[str, Shape]
) -> dict[str, str]:
    """Return the runtime's name of each output of the card; by position if it lost names.

    Args:
        card: the model card.
        source: its checked ONNX file.
        artifact: the file that the runtime opened.
        ports: the shape of each output that the runtime gives.

    Raises:
        ModelError: it gives others.
    """
    if not source.outputs:
        return _given(card, artifact, ports)
    state = {*card.carried.values()} - {*ports}
    wanted = {name: shape for name, shape in source.wanted(card).items() if name not in state}
    if set(wanted) <= set(ports):
        names = {name: name for name in wanted}
    elif len(ports) == len(source.outputs):
        order = dict(zip(source.outputs, ports, strict=True))
        names = {name: order[name] for name in wanted}
    else:
        raise ModelError(
            f"{artifact.path}: {len(source.outputs)} outputs expected "
            f"({', '.join(source.outputs)}), got {_listed(ports)}"
        )
    for name, runtime_name in names.items():
        if not _same(wanted[name], ports[runtime_name]):
            raise ModelError(
                f"{artifact.path}: output {runtime_name!r} is "
                f"{shape_words(ports[runtime_name])}, but {name!r} of {card.model} is "
                f"{shape_words(wanted[name])}: they are different models"
            )
    return names


def _given(card: Card, artifact: Artifact, ports: Mapping[str, Shape]) -> dict[str, str]:
    """The outputs of a file that only its runtime reads."""
    names = card.task.outputs() or tuple(ports)[:1]
    if missing := [name for name in names if name not in ports]:
        raise ModelError(
            f"{card.path}: output: {artifact.path.name} has no output {missing[0]!r}; "
            f"it has {_listed(ports)}"
        )
    try:
        card.task.check({name: ports[name] for name in names})
    except ModelError as error:
        raise ModelError(f"{card.path}: {artifact.path.name}: {error}") from error
    return {name: name for name in names}


def _listed(ports: Mapping[str, Shape]) -> str:
    return ", ".join(f"{name} {shape_words(shape)}" for name, shape in ports.items())


def _same(shape: Shape, other: Shape) -> bool:
    """Whether two shapes are compatible, ignoring the batch and sizes of 1.

    A converter may drop dimensions of size 1, and a runtime may know that a free one is 1.
    """
    whole = shape[1:], other[1:]
    squeezed = tuple([side for side in dims if side != 1] for dims in whole)
    return any(
        len(mine) == len(theirs)
        and all(None in (a, b) or a == b for a, b in zip(mine, theirs, strict=True))
        for mine, theirs in (whole, squeezed)
    )

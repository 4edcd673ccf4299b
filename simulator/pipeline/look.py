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
from simulator.pipeline import in_force
from simulator.pipeline.batched import refuse_mixing
from simulator.pipeline.runtimes import RuntimePool
from simulator.pipeline.watchdog import limited
from simulator.profile.implementations import Choice


@dataclass(frozen=True, slots=True)
class Looked:
    """What a runtime said when it was opened.

    Attributes:
        inputs: the runtime's name of each of the card's inputs; "" for one without a name.
        outputs: the shape of each output; None in it is a dimension that varies.
        effective: what is in force.
        lines: what is done to the tensor on its way in, in words.
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, tuple[int | None, ...]]
    effective: Effective
    lines: tuple[str, ...] = ()


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
        named = {inputs[feed.name or ""]: feed for feed in feeds}
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
        halves = any(port.dtype == np.float16 for port in ports.values())
    told = f"{artifact.path.name} takes float16, to which the tensor is rounded"
    return Looked(inputs, outputs, in_force.probed(choice, effective), (told,) if halves else ())


def probe(feed: Feed) -> Array:
    """Return an input of the right shape; a dimension that differs between samples is 1."""
    shape = [1 if side is None else side for side in feed.shape]
    return np.broadcast_to(np.array(feed.fill, feed.dtype), shape).copy()


def _inputs(artifact: Artifact, taken: Sequence[Port], feeds: Sequence[Feed]) -> dict[str, str]:
    """The runtime's name of each of the card's inputs; by position where names were lost."""
    ports = {port.name: port for port in taken}
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
    raise ModelError(f"{artifact.path} takes {takes}; the model card gives {made}")

"""The network of a stack, opened so that its inner tensors can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import numpy as np
import onnx

from simulator.contract import Array, Stage
from simulator.contract.model import shape_words
from simulator.contract.recipe import Recipe
from simulator.errors import ModelError, UserError, foreign
from simulator.modalities.modality import Feed
from simulator.model.artifact import Artifact, fixed
from simulator.model.card import Card
from simulator.model.onnxfile import dims, load
from simulator.model.passes.graph import edit
from simulator.model.points import Graph, Point, with_points
from simulator.pipeline.batched import Batched
from simulator.pipeline.float_runtime import running
from simulator.pipeline.inference import Infer
from simulator.pipeline.stack import Stack
from simulator.profile.implementations import Choice

Feeds = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Network:
    """A network as its stack runs it: the ONNX file, and the steps from there to its runtime.

    Attributes:
        graph: of the last ONNX file on the way.
        choice: the runtime.
        exporter: what converts the file for it; None where it takes ONNX.
    """

    graph: Graph
    choice: Choice
    exporter: Choice | None

    @property
    def name(self) -> str:
        """The name of the runtime."""
        return self.choice.backend.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs that the file must be fed."""
        return tuple(value.name for value in edit.inputs_of(self.graph.model))

    @property
    def points(self) -> Mapping[str, Point]:
        """The tensors that can be compared."""
        return self.graph.points

    @contextmanager
    def reading(self, names: Sequence[str]) -> Iterator[Callable[[Feeds], Feeds]]:
        """Return what runs the network and returns these tensors, also those that are inputs."""
        inner = [name for name in dict.fromkeys(names) if name not in self.inputs]
        with ExitStack() as opened:
            if not inner:
                yield dict
                return
            run = opened.enter_context(self.opened(with_points(self.graph, inner)))
            yield lambda sample: {**sample, **run(sample)}

    def run(self, model: onnx.ModelProto, samples: Sequence[Feeds]) -> list[Feeds]:
        """Run a model; see :meth:`opened`."""
        with self.opened(model) as run:
            return [run(sample) for sample in samples]

    @contextmanager
    def opened(self, model: onnx.ModelProto) -> Iterator[Callable[[Feeds], Feeds]]:
        """Open a model that was made of this one's graph, through the same steps.

        Args:
            model: it has other outputs, or other inputs.

        Yields:
            Runs it on at least the inputs of the model, whose floats are cast to its types;
            returns the outputs by the model's names.
        """
        kinds, names = self.graph.kinds, [value.name for value in edit.inputs_of(model)]
        with ExitStack() as opened:
            with foreign(ModelError, f"{self.name} cannot open a part of the network"):
                run = opened.enter_context(running(self.choice, model, self.exporter))

            def cast(sample: Feeds) -> Feeds:
                fed = {name: sample[name] for name in names}
                with (
                    np.errstate(over="ignore"),
                    foreign(ModelError, f"{self.name} cannot run a part of the network"),
                ):
                    return run({n: np.ascontiguousarray(v, kinds.get(n)) for n, v in fed.items()})

            yield cast


def network_of(stack: Stack, feeds: Sequence[Feed]) -> Network | None:
    """Return the network of a stack; None where no ONNX file is on the way to its runtime.

    Args:
        stack: the stack.
        feeds: the inputs of one inference, by which free dimensions get their sizes.
    """
    choice = stack.choices[Stage.RUNTIME]
    artifact, exporter = stack.artifact, None
    if artifact.format == "compiled" and artifact.made_of:
        artifact = artifact.made_of
    if artifact.format != "onnx" and Stage.EXPORT in stack.choices and artifact.made_of:
        artifact, exporter = artifact.made_of, stack.choices[Stage.EXPORT]
    if artifact.format != "onnx":
        return None
    model = load(artifact.path)
    if any(None in dims(value) for value in edit.inputs_of(model)):
        edit.pin(model, feeds)
    return Network(Graph(model), choice, exporter)


def of_size(stack: Stack, shape: Sequence[int]) -> Stack | None:
    """Return a stack with the one engine that takes inputs of a shape; None where none does."""
    infer = inference(stack)
    if not infer.sized:
        return stack
    artifact = dict(infer.sized).get(tuple(shape[1:]))
    return with_engine(stack, artifact) if artifact else None


def with_engine(stack: Stack, artifact: Artifact) -> Stack:
    """Return a stack that opens a file, and no other, for its network."""
    infer = inference(stack)
    one = replace(infer, artifact=artifact, sized=())
    steps = [
        one if step is infer else replace(step, infer=one) if isinstance(step, Batched) else step
        for step in stack.chain.recipes
    ]
    return replace(stack, artifact=artifact, chain=replace(stack.chain, recipes=tuple(steps)))


def of_one_size(stack: Stack, card: Card, who: str) -> Stack:
    """Return a stack whose network's file has one size of the input.

    Args:
        stack: the stack.
        card: the model card.
        who: needs that, in messages.

    Raises:
        UserError: it takes several sizes, or any.
    """
    contents = card.modality.sized(stack.profile, stack.fed or card.spec, one_size=True)
    if len(contents) > 1:
        sizes = " and ".join(shape_words(card.modality.feeds(one)[0].shape) for one in contents)
        raise UserError(
            f"{stack.side}: {who} takes a network of one size, not of {sizes}; write a single one "
            "in geometry.input_size.sizes"
        )
    if stack.artifact.format != "onnx":
        return stack
    made = fixed(card.sized(contents[0]), stack.artifact, f"{stack.side}: {who}")
    return stack if made is stack.artifact else with_engine(stack, made)


def inference(stack: Stack) -> Infer:
    """Return the step of a stack that runs its network.

    Raises:
        ModelError: it has none: it was recorded, or its network adapts.
    """
    steps: Sequence[Recipe] = stack.chain.recipes
    for step in steps:
        found = step.infer if isinstance(step, Batched) else step
        if isinstance(found, Infer):
            return found
    raise ModelError(f"{stack.profile.name}: it has no network of its own that runs here")

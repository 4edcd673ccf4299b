"""Running parts of a network on a runtime of the stacks; in FP32 where it is asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import onnx

from simulator import registry
from simulator.contract import Port, Runtime, Stage
from simulator.contract.model_format import suffix_of
from simulator.contract.passes import Feeds
from simulator.errors import ModelError, UserError, one_line
from simulator.model.passes.graph.edit import inputs_of
from simulator.profile.implementations import Choice, implementation


def in_fp32(runtimes: Sequence[Choice], what: str) -> Choice:
    """Return one of some runtimes, switched to FP32, with its other options unchanged.

    Args:
        runtimes: in order of preference.
        what: that needs it, in messages.

    Raises:
        ModelError: none of them opens ONNX files in FP32.
    """
    reasons = []
    for runtime in runtimes:
        kept = {name: value for name, value in runtime.options.items() if name not in runtime.facts}
        try:
            found = implementation(
                Stage.RUNTIME, runtime.backend, kept | {"storage": "fp32", "compute": "fp32"}
            )
        except UserError as error:
            reasons.append(f"{runtime.backend.name}: {one_line(error)}")
            continue
        if found.offer.make.takes == "onnx" and found.offer.make.compiled_by is None:
            return found
        reasons.append(f"{runtime.backend.name} does not open ONNX files directly")
    raise ModelError(f"no runtime for {what}: {'; '.join(dict.fromkeys(reasons))}")


@contextmanager
def running(
    choice: Choice, model: onnx.ModelProto, exporter: Choice | None = None
) -> Iterator[Callable[[Feeds], Feeds]]:
    """Open a model, and return the function that runs it.

    Args:
        choice: the runtime; where it compiles files, the model is compiled first.
        model: an ONNX model.
        exporter: what converts it before, if the runtime does not take ONNX files.

    Yields:
        Runs it: inputs and outputs have the model's names, whatever the runtime calls them.
    """
    make: type[Runtime] = choice.offer.make
    with tempfile.TemporaryDirectory(prefix="simulate-part-") as folder:
        file = Path(folder) / "part.onnx"
        onnx.save(model, str(file))
        if exporter:
            source, file = file, Path(folder) / f"part{suffix_of(make.takes)}"
            exporter.make().export(source, file)
        if make.compiled_by is not None:
            source, file = file, Path(folder) / "compiled"
            file.mkdir()
            registry.compile(choice.backend, choice.offer, source, file, choice.options)
        runtime = choice.make(file)
        try:
            inputs = [value.name for value in inputs_of(model)]
            yield by_names(runtime, inputs, [value.name for value in model.graph.output])
        finally:
            runtime.close()


def by_names(
    runtime: Runtime, inputs: Sequence[str], outputs: Sequence[str]
) -> Callable[[Feeds], Feeds]:
    """Return what runs a model by its own names; where the runtime has others, in their order."""
    given, made = _names(inputs, runtime.inputs), _names(outputs, runtime.outputs)

    def run(feeds: Feeds) -> Feeds:
        found = runtime.run({own: feeds[name] for name, own in given.items()})
        return {name: found[own] for name, own in made.items()}

    return run


def _names(names: Sequence[str], ports: Sequence[Port]) -> dict[str, str]:
    own = [port.name for port in ports]
    if len(names) != len(own):
        raise ModelError(f"{len(names)} tensors expected ({', '.join(names)}), got {len(own)}")
    return dict(zip(names, names if set(names) == set(own) else own, strict=True))

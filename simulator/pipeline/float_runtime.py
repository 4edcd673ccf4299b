"""Running parts of a network in FP32, on a runtime of the stacks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import onnx

from simulator.contract import Stage
from simulator.contract.passes import Feeds
from simulator.errors import ModelError, UserError, one_line
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
def running(choice: Choice, model: onnx.ModelProto) -> Iterator[Callable[[Feeds], Feeds]]:
    """Open a model, and return the function that runs it."""
    with tempfile.TemporaryDirectory(prefix="simulate-part-") as folder:
        file = Path(folder) / "part.onnx"
        onnx.save(model, str(file))
        runtime = choice.make(file)
        try:
            yield runtime.run
        finally:
            runtime.close()

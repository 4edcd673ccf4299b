"""litert-torch: torch.export programs as .tflite files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from backends.quiet import QuietLibrary, quiet
from simulator.contract import Backend, Exporter, Library, Offer, Stage, Unsupported
from simulator.contract.program import plain_program

litert_torch = QuietLibrary("litert_torch", distribution="litert-torch", extra="litert")
torch = Library("torch", distribution="torch", extra="pytorch")


class LiteRtTorchExporter(Exporter):
    """``litert_torch.convert`` of the program's module, traced with its example inputs.

    The input keeps the program's layout: of an NCHW program the file begins with a transpose,
    which changes no number. A program of any size is converted for the ``shapes`` of its inputs.
    """

    takes: ClassVar[str] = "torch_export"
    gives: ClassVar[str] = "tflite"

    def export(self, source: Path, target: Path) -> None:
        """Convert a ``.pt2`` file to a float ``.tflite`` file."""
        program = torch.export.load(plain_program(source))
        if program.example_inputs is None:
            raise Unsupported(
                f"{source} was saved without its example inputs; save it with torch.export.save "
                "as torch.export.export made it"
            )
        given, named = program.example_inputs
        if shapes := self.options.get("shapes"):
            given = tuple(one.new_zeros(to) for one, to in zip(given, shapes, strict=True))
        with quiet():
            litert_torch.convert(program.module(), given, named).export(str(target))


BACKEND = Backend(
    name="litert_torch",
    summary="litert-torch: torch.export programs to .tflite, without TensorFlow",
    library=litert_torch,
    companions=(torch,),
    offers=(
        Offer(
            Stage.EXPORT,
            {},
            LiteRtTorchExporter,
            source="https://github.com/google-ai-edge/litert-torch",
        ),
    ),
)

"""Ascend models: compiled by ATC, run by pyACL."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from backends.ascend.device import acl, call, download, soc, upload, use
from simulator.contract import Array, Effective, MissingLibrary, Options, Port, Runtime, Unsupported

_ONNX = 5  # atc --framework
_HUGE_FIRST = 0  # aclrtMemMallocPolicy


def atc_arguments(
    model: Path, output: Path, inputs: Sequence[tuple[str, Sequence[int]]], options: Options
) -> list[str]:
    """Return the arguments of ATC, the vendor's compiler, for an ONNX file.

    Args:
        model: the ONNX file.
        output: where the .om file goes, without its suffix.
        inputs: names and shapes of the model's inputs.
        options: ``soc_version`` and ``precision_mode`` as ATC calls them.

    Source:
        CANN, "ATC Instructions": --framework, --input_shape, --soc_version, --precision_mode.
    """
    shapes = ";".join(f"{name}:{','.join(map(str, shape))}" for name, shape in inputs)
    return [
        f"--framework={_ONNX}",
        f"--model={model}",
        f"--output={output}",
        f"--input_shape={shapes}",
        f"--soc_version={options['soc_version']}",
        f"--precision_mode={options['precision_mode']}",
        "--output_type=FP32",
        "--log=error",
    ]


class AscendRuntime(Runtime):
    """An .om file on an Ascend device, by ``acl.mdl.execute``.

    ATC's ``precision_mode`` decides the arithmetic. Matrix units use FP16 operands in every mode
    except ``must_keep_origin_dtype``; ``force_fp32`` (the same as ``cube_fp16in_fp32out``) sums
    them in FP32; ``force_fp16`` is ATC's default. Inputs and outputs are float32, because the .om
    file contains no AIPP.
    """

    compiled_by: ClassVar[tuple[str, ...] | None] = ("soc_version", "precision_mode")
    one_at_a_time: ClassVar[bool] = True

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Options) -> None:
        """Write ``model.om``, and ``ports.json`` with names and shapes, by ATC.

        Raises:
            MissingLibrary: ATC is not on the PATH.
            Unsupported: ATC refuses the model; the message has its last output.
        """
        import onnx

        atc = shutil.which("atc")
        if atc is None:
            raise MissingLibrary(
                "Ascend models are compiled by 'atc', which is not on the PATH; install Huawei's "
                "CANN toolkit (hiascend.com) and source its set_env.sh"
            )
        graph = onnx.load(str(source)).graph
        constants = {tensor.name for tensor in graph.initializer}
        inputs, outputs = (
            [(v.name, [d.dim_value for d in v.type.tensor_type.shape.dim]) for v in values]
            for values in ([v for v in graph.input if v.name not in constants], graph.output)
        )
        command = [atc, *atc_arguments(source, folder / "model", inputs, options)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise Unsupported(f"atc: {' '.join(said[-2:])[:300] or done.returncode}")
        (folder / "ports.json").write_text(json.dumps([inputs, outputs]))

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        found, wanted = soc(), self.options["soc_version"]
        if found != wanted:
            raise Unsupported(f"soc_version {wanted} was requested, but this device is {found}")
        model = str(artifact / "model.om")
        self._model = call(acl.mdl.load_from_file(model), "acl.mdl.load_from_file")
        self._desc = acl.mdl.create_desc()
        call(acl.mdl.get_desc(self._desc, self._model), "acl.mdl.get_desc")
        inputs, outputs = json.loads((artifact / "ports.json").read_text())
        self._inputs, self._in = self._buffers(len(inputs), acl.mdl.get_input_size_by_index)
        self._outputs, self._out = self._buffers(len(outputs), acl.mdl.get_output_size_by_index)
        return tuple(map(_port, inputs)), tuple(map(_port, outputs))

    def _buffers(self, count: int, size_of: Callable[[int, int], int]) -> tuple[list[int], int]:
        """Allocate *count* buffers; return their addresses, and the dataset that holds them."""
        dataset, addresses = acl.mdl.create_dataset(), []
        for index in range(count):
            size = size_of(self._desc, index)
            addresses.append(call(acl.rt.malloc(size, _HUGE_FIRST), "acl.rt.malloc"))
            buffer = acl.create_data_buffer(addresses[-1], size)
            call(acl.mdl.add_dataset_buffer(dataset, buffer), "acl.mdl.add_dataset_buffer")
        return addresses, dataset

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        use()
        for port, address in zip(self.inputs, self._inputs, strict=True):
            upload(address, np.ascontiguousarray(feeds[port.name]))
        call(acl.mdl.execute(self._model, self._in, self._out), "acl.mdl.execute")
        return {  # a compiled model has no free sizes, which the type of a port allows
            port.name: download(address, 4 * int(np.prod(port.shape)))  # type: ignore[arg-type]
            .view(np.float32)
            .reshape(port.shape)  # type: ignore[arg-type]
            for port, address in zip(self.outputs, self._outputs, strict=True)
        }

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Return the device's name; it does not report the precisions that it uses."""
        return Effective({}, {"device": "npu", "soc_version": soc()})

    def _close(self) -> None:
        use()
        call(acl.mdl.unload(self._model), "acl.mdl.unload")
        acl.mdl.destroy_desc(self._desc)
        for dataset in (self._in, self._out):
            for index in range(acl.mdl.get_dataset_num_buffers(dataset)):
                acl.destroy_data_buffer(acl.mdl.get_dataset_buffer(dataset, index))
            acl.mdl.destroy_dataset(dataset)
        for address in (*self._inputs, *self._outputs):
            acl.rt.free(address)


def _port(described: tuple[str, list[int]]) -> Port:
    name, shape = described
    return Port(name, np.dtype(np.float32), tuple(shape))

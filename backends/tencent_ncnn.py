"""ncnn on the CPU, converted from ONNX by pnnx."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.onnx_ports import (
    check_fixed,
    load_ports,
    name_nodes,
    ports,
    read_onnx,
    save_ports,
)
from simulator.contract import (
    Array,
    AtLeast,
    Backend,
    Effective,
    Library,
    MissingLibrary,
    Offer,
    Port,
    Runtime,
    Stage,
    Unsupported,
)
from simulator.errors import ModelError

ncnn = Library("ncnn", distribution="ncnn", extra="ncnn")
pnnx = Library("pnnx", distribution="pnnx", extra="ncnn")

_FLAGS = {
    "fp16": ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic"),
    "bf16": ("use_bf16_packed", "use_bf16_storage"),
}
_HEAVY = re.compile("Convolution|Deconvolution|InnerProduct|MatMul|Gemm")


class NcnnRuntime(Runtime):
    """``ncnn.Net``, from the ``.param`` and ``.bin`` that ``pnnx fp16=0`` writes.

    ``fp16`` is ncnn's default, ``bf16`` its BF16 storage, and ``fp32`` has both off; the flags
    are what is asked for, and each layer says what it obeys (on x86 no convolution obeys FP16).
    ncnn has no batch dimension, so models have a batch of one. Winograd, sgemm and packed
    layouts stay on, as ncnn has them. One extractor a call.

    Source:
        https://github.com/Tencent/ncnn/blob/master/src/net.cpp, ``convert_layout``.
    """

    compiled_by: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def compile(cls, source: Path, folder: Path, options: Mapping[str, Any]) -> None:
        """Convert an ONNX file, in a folder that is removed again.

        Raises:
            ModelError: pnnx fails, or leaves operators that ncnn does not have.
            Unsupported: free dimensions, or a batch other than one.
        """
        import onnx

        model = read_onnx(source)
        inputs, outputs = ports(model)
        check_fixed((*inputs, *outputs), "ncnn")
        for port in (*inputs, *outputs):
            if port.shape[:1] != (1,):
                raise Unsupported(f"ncnn has no batch dimension, and {port.name!r} is {port.shape}")
        shapes = ",".join(str(list(port.shape)).replace(" ", "") + "f32" for port in inputs)
        with tempfile.TemporaryDirectory() as work:
            onnx.save(model, str(Path(work) / "model.onnx"))
            done = subprocess.run(
                [_converter(), "model.onnx", f"inputshape={shapes}", "fp16=0"],
                cwd=work,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            said = done.stdout + done.stderr
            if unknown := re.findall(r"^todo (\S+)", said, re.MULTILINE):
                raise ModelError(f"ncnn has no operator {name_nodes(model, unknown)}: {source}")
            made = [Path(work) / f"model.ncnn.{suffix}" for suffix in ("param", "bin")]
            if done.returncode or not all(file.is_file() for file in made):
                reason = [line for line in said.splitlines() if "failed" in line][-1:]
                words = " ".join("".join(reason).split())[:200] or f"exit {done.returncode}"
                raise ModelError(f"pnnx cannot convert {source}: {words}")
            for file in made:
                shutil.copyfile(file, folder / file.name)
        save_ports(folder, inputs, outputs)

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        self._net = ncnn.Net()
        self._net.opt.num_threads = self.options["threads"]
        self._net.opt.use_vulkan_compute = False
        for kind, flags in _FLAGS.items():
            for flag in flags:
                setattr(self._net.opt, flag, kind == self.options["compute"])
        files = [str(artifact / f"model.ncnn.{suffix}") for suffix in ("param", "bin")]
        if self._net.load_param(files[0]) or self._net.load_model(files[1]):
            raise ModelError(f"ncnn cannot load what pnnx made: {artifact}")
        return load_ports(artifact)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        with self._net.create_extractor() as extractor:
            for index, port in enumerate(self.inputs):
                extractor.input(f"in{index}", ncnn.Mat(feeds[port.name][0]).clone())
            found = {}
            for index, port in enumerate(self.outputs):
                failed, value = extractor.extract(f"out{index}")
                if failed:
                    raise RuntimeError(f"ncnn could not compute {port.name!r}; out of memory?")
                found[port.name] = np.array(value).reshape(port.shape)
            return found

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Ask every layer which storage it supports; ncnn's own rule says what it runs in."""
        option = self._net.opt
        heavy = Counter[str]()
        for layer in self._net.layers():
            if _HEAVY.match(layer.type):
                halves = option.use_fp16_storage and layer.support_fp16_storage
                brains = option.use_bf16_storage and layer.support_bf16_storage
                heavy["fp16" if halves else "bf16" if brains else "fp32"] += 1
        return Effective(
            products=heavy,
            options={"device": "cpu", "threads": option.num_threads},
            details={
                "layers": dict(sorted(Counter(x.type for x in self._net.layers()).items())),
                "flags": {flag: getattr(option, flag) for fs in _FLAGS.values() for flag in fs},
            },
        )

    def _close(self) -> None:
        self._net.clear()
        del self._net


def _converter() -> str:
    """The path of pnnx, without importing its package, which imports torch."""
    spec = importlib.util.find_spec("pnnx")
    if spec is None or spec.origin is None:
        raise MissingLibrary(
            "ncnn models are made by 'pnnx', which is not installed; "
            "try: pip install 'pipeline-simulator[ncnn]'"
        )
    return str(Path(spec.origin).with_name("pnnx"))


BACKEND = Backend(
    name="ncnn",
    summary="ncnn on the CPU, converted by pnnx: FP32, its default (FP16 where it can), BF16",
    library=ncnn,
    companions=(pnnx,),
    offers=(
        Offer(
            Stage.RUNTIME,
            {
                "device": ("cpu",),
                "threads": AtLeast(1),
                "storage": ("fp32",),
                "compute": ("fp32", "fp16", "bf16"),
            },
            NcnnRuntime,
            source="https://github.com/Tencent/ncnn/wiki",
        ),
    ),
)

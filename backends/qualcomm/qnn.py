"""Qualcomm QNN: the HTP (Hexagon tensor processor) through ONNX Runtime's plugin provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from backends.ort.library import session_options, session_ports
from backends.qualcomm.device import PROVIDER, device, find, here, ort, qnn
from backends.quiet import quiet
from simulator.contract import (
    Admits,
    Array,
    AtLeast,
    Backend,
    Effective,
    Evidence,
    Offer,
    Port,
    Runtime,
    Stage,
    Unsupported,
)

_DTYPES = ("tensor(float)", "tensor(float16)", "tensor(uint8)")


class QnnRuntime(Runtime):
    """``onnxruntime.InferenceSession`` that runs the whole graph on the QNN provider's HTP backend.

    ONNX Runtime silently runs nodes that QNN does not support on the CPU; that is refused here.
    With ``offload_graph_io_quantization``, QNN's default, the QuantizeLinear at the inputs and the
    DequantizeLinear at the outputs run on the CPU; otherwise they run on the HTP, which may round
    differently. FP16 graphs have float32 inputs and outputs. ``soc_model`` is Qualcomm's number of
    the chip (57 is SM8650) and ``htp_arch`` the version of its HTP (75); 0 selects QNN's default,
    which does not support FP16.
    """

    fixed_shapes: ClassVar[bool] = True
    one_at_a_time: ClassVar[bool] = True

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        options = session_options(self.options["threads"])
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        options.add_provider_for_devices([find(self.options["device"])], self._provider())
        with quiet():
            self._session = ort.InferenceSession(str(artifact), options, enable_fallback=0)
        self._nodes = Counter(
            (node.op_type, subgraph.ep_name)
            for subgraph in self._session.get_provider_graph_assignment_info()
            for node in subgraph.get_nodes()
        )
        self._refuse_the_cpu()
        return session_ports(self._session, _DTYPES)

    def _provider(self) -> dict[str, str]:
        fields = {
            "backend_type": "htp",
            "soc_model": str(self.options["soc_model"]),
            "htp_arch": str(self.options["htp_arch"]),
        }
        if self.options["compute"] == "fp16":
            return {**fields, "enable_htp_fp16_precision": "1"}
        offload = self.options["offload_graph_io_quantization"]
        return {**fields, "offload_graph_io_quantization": str(int(offload))}

    def _refuse_the_cpu(self) -> None:
        allowed = {"QuantizeLinear", "DequantizeLinear"}
        if not self.options.get("offload_graph_io_quantization"):
            allowed = set()
        lost = {op: n for (op, where), n in self._nodes.items() if where != PROVIDER}
        if lost.keys() - allowed or not any(where == PROVIDER for _, where in self._nodes):
            named = ", ".join(f"{n} {op}" for op, n in sorted(lost.items()) if op not in allowed)
            raise Unsupported(
                f"QNN leaves {named or 'everything'} to the CPU; the HTP needs fixed shapes, "
                "supported operators, and a soc_model that matches htp_arch"
            )

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return self._named(self._session.run(None, dict(feeds)))

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Read back the provider's options, and the provider of each node.

        QNN fuses the graph into one node and does not report its precisions.
        """
        given = self._session.get_provider_options()[PROVIDER]
        offload = given.get("offload_graph_io_quantization")
        return Effective(
            products={},
            options={
                "device": here(),
                "threads": self._session.get_session_options().intra_op_num_threads,
                "soc_model": int(given["soc_model"]),
                "htp_arch": int(given["htp_arch"]),
                **({} if offload is None else {"offload_graph_io_quantization": offload == "1"}),
            },
            details={
                "provider_options": given,
                "nodes": {f"{op}({where})": n for (op, where), n in sorted(self._nodes.items())},
            },
        )

    def _close(self) -> None:
        del self._session


_ARCHS = (68, 69, 73, 75, 79, 81)
_SOCS = (30, 36, 42, 43, 57, 60, 69, 87)
"""QNN's numbers of chips that the emulator supports; another number breaks the whole process."""
_INT8: dict[str, Admits] = {
    "storage": ("int8",),
    "compute": ("int8",),
    "threads": AtLeast(1),
    "soc_model": (0, *_SOCS),
    "htp_arch": (0, *_ARCHS),
    "offload_graph_io_quantization": (True,),
}
_FP16: dict[str, Admits] = {
    "storage": ("fp32",),
    "compute": ("fp16",),
    "threads": AtLeast(1),
    "soc_model": _SOCS[1:],  # Hexagon V68 has no FP16: the emulator then computes in FP32
    "htp_arch": _ARCHS[1:],
}
_SOURCE = "https://onnxruntime.ai/docs/execution-providers/QNN-ExecutionProvider.html"

BACKEND = Backend(
    name="qnn",
    summary="Qualcomm QNN by ONNX Runtime: HTP emulator on x86, HTP on a device; INT8 and FP16",
    library=qnn,
    companions=(ort,),
    device=device,
    offers=tuple(
        Offer(Stage.RUNTIME, {"device": (where,), **fields}, QnnRuntime, evidence, _SOURCE)
        for where, evidence in (
            ("htp_emulator", Evidence.VENDOR_SIMULATOR),
            ("htp", Evidence.NATIVE),
        )
        for fields in (_INT8, _FP16)
    ),
    fields={
        "soc_model": "Qualcomm's number of the chip; 0: none in particular",
        "htp_arch": "the architecture of the HTP; 0: none in particular",
        "offload_graph_io_quantization": "whether the CPU quantizes inputs and dequantizes outputs",
    },
)

"""The Qualcomm device of this machine: the HTP of a chip, or its emulator on x86."""

from __future__ import annotations

import contextlib
import importlib
import platform
import threading
from typing import Any

from backends.ort.library import FOR_GPUS
from simulator.contract import Library, MissingLibrary

ort = Library("onnxruntime", distribution="onnxruntime", extra="qnn", others=FOR_GPUS)
qnn = Library("onnxruntime_qnn", distribution="onnxruntime-qnn", extra="qnn")

PROVIDER = "QNNExecutionProvider"
_registering = threading.Lock()


def here() -> str:
    """Return the HTP of this processor: the emulator on x86, the device on Arm."""
    return "htp_emulator" if platform.machine().lower() in ("x86_64", "amd64") else "htp"


def find(wanted: str) -> Any:
    """Return ONNX Runtime's device for QNN; its library is registered once per process.

    Args:
        wanted: ``htp_emulator`` or ``htp``.

    Raises:
        MissingLibrary: this machine has the other one, or none.
    """
    if wanted != here():
        raise MissingLibrary(
            f"device {wanted} was requested, but {platform.machine()} has {here()}; "
            f"use device: {here()}"
        )
    with _registering:
        if not _devices():
            _bind_libffi()
            try:
                ort.register_execution_provider_library(PROVIDER, qnn.get_library_path())
            except Exception as error:  # ONNX Runtime has no class of its own for this
                raise MissingLibrary(f"onnxruntime-qnn does not load: {error}") from error
    found = _devices()
    if not found:
        raise MissingLibrary("onnxruntime-qnn finds no device on this machine")
    npu = ort.OrtHardwareDeviceType.NPU
    return next((device for device in found if device.device.type == npu), found[0])


def _bind_libffi() -> None:
    """Let cffi find its own libffi before QNN shows a copy to every library of the process.

    libQnnHtp.so exports ``ffi_call``. What cffi calls for the first time afterwards is that one,
    and what soundfile then reads is garbage (onnxruntime-qnn 2.7.0).
    """
    with contextlib.suppress(ImportError):
        ffi = importlib.import_module("cffi").FFI()
        ffi.callback("int(int)", lambda number: number)(0)


def _devices() -> list[Any]:
    return [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]


def device() -> str:
    """Return the name of this machine's HTP."""
    found = find(here())
    return f"{here()} of {found.ep_vendor}, on a {found.device.type.name} device"

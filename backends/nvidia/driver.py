"""Ask NVIDIA's driver for a device, by ctypes, before any NVIDIA library is loaded.

Without a device, DALI, nvImageCodec and TensorRT print to the console or crash.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from simulator.contract import MissingLibrary


def cuda_device(asked: str = "") -> str:
    """Return the name of the first CUDA device.

    Args:
        asked: what needs the device, for the start of the message; for example ``device: mixed``.

    Raises:
        MissingLibrary: there is no driver, or no device; the message gives the driver's reason.

    Source:
        CUDA driver API: cuInit, cuDeviceGet, cuDeviceGetName, cuGetErrorString.
    """
    needed = f"{asked}: a CUDA GPU is needed" if asked else "a CUDA GPU is needed"
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise MissingLibrary(f"{needed}, but there is no NVIDIA driver: {error}") from error
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    calls: list[tuple[Callable[..., int], tuple[Any, ...]]] = [
        (cuda.cuInit, (0,)),
        (cuda.cuDeviceGet, (ctypes.byref(device), 0)),
        (cuda.cuDeviceGetName, (name, len(name), device)),
    ]
    for call, arguments in calls:
        if code := call(*arguments):
            reason = ctypes.c_char_p()
            cuda.cuGetErrorString(code, ctypes.byref(reason))
            why = (reason.value or b"unknown error").decode()
            raise MissingLibrary(f"{needed}, but the driver says: {why} ({code})")
    return name.value.decode()

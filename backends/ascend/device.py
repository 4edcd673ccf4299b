"""The Ascend device of this process, through CANN's Python module ``acl``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.contract import U8, Array, Library, MissingLibrary


class CannLibrary(Library):
    """A module of CANN, which is not in any package index."""

    def load(self) -> ModuleType:
        """Import the module.

        Raises:
            MissingLibrary: CANN is not installed, or not set up.
        """
        try:
            return super().load()
        except MissingLibrary as error:
            raise MissingLibrary(
                "an Ascend device needs Huawei's CANN toolkit, but its Python module 'acl' cannot "
                "be imported; install CANN (hiascend.com) and source its set_env.sh"
            ) from error


CANN = CannLibrary("acl", distribution="acl", extra="ascend")
__all__ = ["CANN", "Channel", "Scratch", "acl", "call", "download", "soc", "upload", "use"]
if TYPE_CHECKING:
    import acl
else:
    acl = CANN

_TO_DEVICE, _TO_HOST, _WITHIN = 1, 2, 3  # aclrtMemcpyKind
_ON_THE_DEVICE = 0  # aclrtRunMode: ACL_DEVICE, where host and device share memory
_opening = threading.Lock()
_open: dict[str, Any] = {}


def call(result: Any, what: str) -> Any:
    """Unpack the result of a pyACL function: an error code, or values and an error code.

    Raises:
        RuntimeError: the code is not 0.
    """
    *values, code = result if isinstance(result, tuple) else (result,)
    if code:
        raise RuntimeError(f"{what} failed with CANN error {code}")
    return values[0] if len(values) == 1 else tuple(values)


def use() -> None:
    """Make device 0 current in this thread; the first call in the process opens it.

    Raises:
        MissingLibrary: there is no CANN, or no device.
    """
    with _opening:
        if not _open:
            try:
                call(acl.init(), "acl.init")
                call(acl.rt.set_device(0), "acl.rt.set_device")
                _open["context"] = call(acl.rt.create_context(0), "acl.rt.create_context")
                mode = call(acl.rt.get_run_mode(), "acl.rt.get_run_mode")
            except RuntimeError as error:
                raise MissingLibrary(f"CANN finds no usable Ascend device: {error}") from error
            _open["one memory"] = mode == _ON_THE_DEVICE
    call(acl.rt.set_context(_open["context"]), "acl.rt.set_context")


def soc() -> str:
    """Return the device's name, for example ``Ascend310P3``.

    Raises:
        MissingLibrary: there is no CANN, no device, or CANN does not know its name.
    """
    use()
    name = acl.get_soc_name()
    if name is None:
        raise MissingLibrary("CANN does not tell the name of the Ascend device")
    return name


def upload(address: int, array: Array) -> None:
    """Copy a C-contiguous array to the device."""
    _copy(address, array.ctypes.data, array.nbytes, _TO_DEVICE)


def download(address: int, size: int) -> U8:
    """Copy *size* bytes from the device."""
    array = np.empty(size, np.uint8)
    _copy(array.ctypes.data, address, size, _TO_HOST)
    return array


class Channel:
    """A DVPP channel and its stream; one task at a time."""

    def __init__(self) -> None:
        use()
        self._lock = threading.Lock()
        self._stream = call(acl.rt.create_stream(), "acl.rt.create_stream")
        self._desc = acl.media.dvpp_create_channel_desc()
        call(acl.media.dvpp_create_channel(self._desc), "acl.media.dvpp_create_channel")

    def run(self, task: Callable[[int, int], int], what: str) -> None:
        """Start an asynchronous task of ``acl.media``, and wait until it ends.

        Args:
            task: calls the function with the channel and the stream; returns its error code.
            what: the function's name.
        """
        with self._lock:
            call(task(self._desc, self._stream), what)
            call(acl.rt.synchronize_stream(self._stream), what)


class Scratch(ExitStack):
    """DVPP memory and picture descriptions that are freed at the end of a ``with`` block."""

    def malloc(self, size: int) -> int:
        """Allocate *size* bytes; return their address on the device."""
        use()
        address: int = call(acl.media.dvpp_malloc(size), "acl.media.dvpp_malloc")
        self.callback(acl.media.dvpp_free, address)
        return address

    def picture(
        self, address: int, format: int, size: tuple[int, int], strides: tuple[int, int], n: int
    ) -> int:
        """Describe *n* bytes at *address* as a picture of *size*, (width, height)."""
        picture: int = acl.media.dvpp_create_pic_desc()
        self.callback(acl.media.dvpp_destroy_pic_desc, picture)
        media, (width, height), (across, down) = acl.media, size, strides
        codes = (
            media.dvpp_set_pic_desc_data(picture, address),
            media.dvpp_set_pic_desc_format(picture, format),
            media.dvpp_set_pic_desc_width(picture, width),
            media.dvpp_set_pic_desc_height(picture, height),
            media.dvpp_set_pic_desc_width_stride(picture, across),
            media.dvpp_set_pic_desc_height_stride(picture, down),
            media.dvpp_set_pic_desc_size(picture, n),
        )
        for code in codes:
            call(code, "acl.media.dvpp_set_pic_desc")
        return picture


def _copy(to: int, source: int, size: int, kind: int) -> None:
    kind = _WITHIN if _open["one memory"] else kind
    call(acl.rt.memcpy(to, size, source, size, kind), "acl.rt.memcpy")

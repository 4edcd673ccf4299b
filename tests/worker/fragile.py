"""A backend that crashes, hangs, exits or talks, as its profile asks."""

import contextlib
import ctypes
import os
import signal
import sys
import time

import numpy as np

from simulator.contract import Backend, Decoder, Offer, SampleError, Stage
from simulator.errors import ProfileError


class FragileDecoder(Decoder):
    """Decodes every image to gray of its width; an image 13 wide brings the trouble."""

    def _rgb(self, image):
        if image.width == 13:
            self._trouble()
        print("libraries chatter")
        return np.full((image.height, image.width, 3), image.width, np.uint8)

    def _trouble(self):  # noqa: PLR0912  one kind of trouble each
        match self.options["idct"]:
            case "islow":  # a word that a profile may use: crash
                ctypes.string_at(0)
            case "ifast":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "fork":
                if not os.fork():
                    time.sleep(600)  # longer than anyone waits for an answer
                    os._exit(0)
                os.abort()
            case "hang":
                time.sleep(600)
            case "exit":
                print("out of luck", file=sys.stderr)
                os._exit(7)
            case "refuse":
                raise SampleError("thirteen is unlucky")
            case "raise":
                raise RuntimeError("two\nlines")
            case "profile":
                raise ProfileError(["one problem", "another"])
            case "half":
                os.write(fds()[0], b'{"value": ')
                time.sleep(600)
            case "endless":
                while True:
                    os.write(fds()[0], b" " * 2**20)
            case "objects":
                os.write(fds()[0], b'{"value": {"$array": ["|O", [1], 0]}, "size": 0}\n')
                time.sleep(600)
            case "nonsense":
                os.write(fds()[0], b'{"size": 0}\n')
                time.sleep(600)
            case "beyond":
                os.write(fds()[0], b'{"value": {"$array": ["|u1", [9], 0]}, "size": 1000000}\n')
                time.sleep(600)
            case "cut":
                with contextlib.suppress(PermissionError):
                    os.ftruncate(fds()[2], 0)


def fds():
    """The file descriptors that this worker was given."""
    return [int(one) for one in sys.argv[sys.argv.index("--fds") + 1].split(",")]


KINDS = (
    "islow", "ifast", "fork", "hang", "exit", "refuse", "raise", "profile", "half", "endless",
    "objects", "nonsense", "beyond", "cut",
)  # fmt: skip
BACKEND = Backend(
    name="fragile",
    summary="what can go wrong",
    dies_of=("png",),
    offers=(Offer(Stage.DECODE, {"exif": ("ignore",), "idct": KINDS}, FragileDecoder),),
)

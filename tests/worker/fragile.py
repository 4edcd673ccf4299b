"""A backend that crashes, hangs, exits or talks, as its profile asks."""

import ctypes
import os
import sys
import time

import numpy as np

from simulator.contract import Backend, Decoder, Offer, SampleError, Stage


class FragileDecoder(Decoder):
    """Decodes every image to gray of its width; an image 13 wide brings the trouble."""

    def _rgb(self, image):
        if image.width == 13:
            self._trouble()
        print("libraries chatter")
        return np.full((image.height, image.width, 3), image.width, np.uint8)

    def _trouble(self):
        match self.options["idct"]:
            case "islow":  # a word that a profile may use: crash
                ctypes.string_at(0)
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


KINDS = ("islow", "fork", "hang", "exit", "refuse", "raise")
BACKEND = Backend(
    name="fragile",
    summary="what can go wrong",
    offers=(Offer(Stage.DECODE, {"exif": ("ignore",), "idct": KINDS}, FragileDecoder),),
)

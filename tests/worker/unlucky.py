"""Images for the fragile backend, and processes that have a worker of it."""

import os
import subprocess
import sys
from pathlib import Path

import tiny

from simulator import registry
from simulator.contract import Stage, inspect


def picture(width):
    return inspect("x.png", tiny.encoded(tiny.picture((9, 9, 9), (8, width)), "png"))


PICTURE, UNLUCKY = picture(12), picture(13)
HAS_A_WORKER = """
import sys
from simulator.contract import inspect
from simulator.worker import client
from simulator.worker.client import Stale, Worker
from simulator.worker.home import Home
worker = Worker(Home("fragile", sys.executable, "fragile:BACKEND"))

def make():
    return worker.call("make", "decode", 0, {"exif": "ignore", "idct": "hang"})

made = make()
images = [inspect("x.png", bytes.fromhex(line)) for line in sys.stdin.read().split()]
"""


def decoder(idct):
    backend = registry.backend("fragile")
    (offer,) = backend.of(Stage.DECODE)
    return registry.make(backend, offer, {"exif": "ignore", "idct": idct})


def with_worker(code, *images):
    """A process that has a worker and some images, and runs *code*."""
    process = subprocess.Popen(
        [sys.executable, "-c", HAS_A_WORKER + code], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )  # fmt: skip
    process.stdin.write("\n".join(image.data.hex() for image in images))
    process.stdin.close()
    return process

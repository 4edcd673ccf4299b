"""A backend whose runtime counts how many of it are open."""

import threading
import time
from typing import ClassVar

import numpy as np

from simulator.contract import Backend, Effective, Offer, Port, Runtime, Stage


class CountedRuntime(Runtime):
    """Takes and gives one number; of a file called ``bad`` it cannot be opened."""

    lock = threading.Lock()
    opened: ClassVar[list] = []
    closed: ClassVar[list] = []
    most = 0

    @classmethod
    def forget(cls):
        cls.opened, cls.closed, cls.most = [], [], 0

    def _open(self, artifact):
        if artifact.name == "bad":
            raise RuntimeError("it is bad")
        time.sleep(0.001)  # for the others to come in
        self.name = artifact.name
        with self.lock:
            self.opened.append(self.name)
            type(self).most = max(self.most, len(self.opened) - len(self.closed))
        port = (Port("x", np.dtype(np.float32), (1,)),)
        return port, port

    def effective(self, feeds):
        return Effective({}, {}, {})

    def _run(self, feeds):
        return feeds

    def _close(self):
        with self.lock:
            self.closed.append(self.name)


BACKEND = Backend(
    name="counted",
    summary="counts what is open",
    offers=(Offer(Stage.RUNTIME, {}, CountedRuntime),),
)

"""What a worker gets of a sample whose files it does not see, and says; no cluster is needed."""

import errno
import os
import pickle
import socket
from dataclasses import dataclass

import numpy as np
import steps
from steps_that_kill import Named

from simulator.cluster.actor import WorkerActor
from simulator.cluster.messages import UnseenError, Work, sample_of, with_data
from simulator.cluster.payload import pack
from simulator.contract.recipe import Chain
from simulator.data.folder import Item
from simulator.data.masks import IndexMask, MovedMask
from simulator.modalities.image.modality import IMAGE


def test_a_mask_is_sent_with_its_image(tmp_path):
    """Else a worker that sees the images alone would skip every sample."""
    image, mask = tmp_path / "a.jpg", tmp_path / "a.png"
    image.write_bytes(b"an image")
    mask.write_bytes(b"its classes")
    truth = MovedMask(IndexMask(mask, np.zeros(65536, np.int16)), None)
    seen, known = sample_of(Item("a.jpg", image, truth)), truth.digest()
    sent = pickle.loads(pickle.dumps(with_data(seen)))
    mask.unlink()

    assert isinstance(WorkerActor("never").run([seen], []), UnseenError)
    assert sent.item.truth.is_here() and sent.item.truth.digest() == known
    assert sent.data.read(100) == b"an image"


@dataclass(frozen=True, eq=False)
class Full(Named):
    """Cannot be opened: there is no room for its file."""

    def open(self, runtimes):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/engine")


def test_a_file_that_a_worker_cannot_write_is_said_with_its_machine():
    work = Work(steps.merged(Chain((Full(),))), IMAGE, None, False, {})

    failed = WorkerActor("never").open(pack(work), [])

    here = socket.gethostname()
    assert str(failed) == f"/tmp/engine: No space left on device (on {here})"

"""What a worker gets of a sample whose files it does not see; no cluster is needed for that."""

import pickle

import numpy as np

from simulator.cluster.hand import Hand
from simulator.cluster.messages import Lacking, sample_of, with_data
from simulator.data.folder import Item
from simulator.data.masks import IndexMask, MovedMask, Values


def test_a_mask_is_sent_with_its_image(tmp_path):
    """Else a worker that sees the images alone would skip every sample."""
    image, mask = tmp_path / "a.jpg", tmp_path / "a.png"
    image.write_bytes(b"an image")
    mask.write_bytes(b"its classes")
    truth = MovedMask(IndexMask(mask, Values(np.zeros(65536, np.int16))), None)
    seen, known = sample_of(Item("a.jpg", image, truth)), truth.digest()
    sent = pickle.loads(pickle.dumps(with_data(seen)))
    mask.unlink()

    assert Hand("never").run([seen], []) == Lacking()
    assert sent.item.truth.is_here() and sent.item.truth.digest() == known
    assert sent.data.read(100) == b"an image"

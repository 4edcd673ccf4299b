"""What campaigns run on."""

import campaigns
import pytest
import tiny


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the card of a small network, and three images in ``data``."""
    folder = tmp_path_factory.mktemp("faults")
    tiny.card(folder, campaigns.network())
    tiny.data(folder / "data", 3)
    return folder

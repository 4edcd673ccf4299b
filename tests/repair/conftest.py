"""What the tests of repairs share."""

import pytest
from made_repair import BGR, written

from simulator import repair


@pytest.fixture
def repaired(card, tmp_path):
    """A function that repairs the made pair, its document with *changed* fields."""

    def start(out="run", changed=None, **options):
        given = {"repairs": written(tmp_path, **(changed or {})), "overrides": BGR} | options
        return repair(**{"model": card, "out": tmp_path / out, **given})

    return start

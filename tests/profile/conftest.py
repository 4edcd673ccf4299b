"""What the tests of profiles share."""

import pytest


@pytest.fixture
def imports(tmp_path):
    """Imports documents of other tools; see :class:`importing.Importer`."""
    from importing import Importer

    return Importer(tmp_path)

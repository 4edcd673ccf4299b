"""What the tests of profiles share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a document and return its path."""

    def write_it(text, name="p.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_it


@pytest.fixture
def imports(tmp_path):
    """Imports documents of other tools; see :class:`importing.Importer`."""
    from importing import Importer

    return Importer(tmp_path)

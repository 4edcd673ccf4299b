"""A folder for what the tests of one file share."""

import pytest


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")

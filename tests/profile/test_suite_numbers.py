"""Numbers of suites, written as the overrides of profiles."""

import yaml

from simulator.profile.suite import overrides


def test_small_and_large_numbers_stay_numbers():
    option = {"a": 1e-10, "b": {"c": [1e20, 2.5e-7, 3]}, "d": "1e-10", "e": None, "f": True}

    written = dict(one.split("=", 1) for one in overrides(option))

    assert {key: yaml.safe_load(value) for key, value in written.items()} == option

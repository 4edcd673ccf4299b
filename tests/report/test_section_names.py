"""Sections of other packages: what is wrong with one is said of its package, not of the run."""

import pytest
from installing import VENDOR, installed
from made_pairs import pair

from simulator.errors import UserError
from simulator.report import page


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("pair.acme", "acme_npu.report:grades", r"on no page.*unknown experiment 'pair'"),
        ("acme.grades", "acme_npu.report:grades", r"on no page.*unknown experiment 'acme'"),
        ("run.acme", "acme_npu.gone:grades", r"does not load: No module named 'acme_npu\.gone'"),
        ("run.acme", "acme_npu.report:Section", r"is not a report section of that name"),
    ],
)
def test_a_section_that_cannot_be_shown(tmp_path, monkeypatch, name, value, why):
    run = pair(tmp_path / "run", [0], [0], [0])
    points = {"simulator.report_sections": {name: value}}
    with (
        installed(monkeypatch, tmp_path / "package", points, VENDOR),
        pytest.raises(UserError, match=rf"^the (report section|entry point) '{name}'.*{why}"),
    ):
        page.write(run)

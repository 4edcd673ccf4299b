"""Names in tables that other programs open: no formula, no markup, no command."""

import base64
import csv
import gzip
import io
from pathlib import Path

import pyarrow as pa
import pytest
import tiny

from simulator import cli
from simulator.report import cells, reading
from simulator.report.sections import provenance

SUITE = """schema: 1
name: hostile
summary: names that programs may run
train: pillow_fp32
columns:
  "=1+1":
    "@SUM(A1)|_x_": {resize.interpolation: nearest}
"""


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_cell_is_no_formula(start):
    """OWASP, CSV Injection."""
    assert cells.spreadsheet(f"{start}1") == f"'{start}1"
    assert cells.spreadsheet(f"1{start}1") == f"1{start}1"


def test_a_cell_of_markdown_is_one_cell():
    assert cells.markdown("a|b\n[c](d)<e>`f`*g*\\") == r"a\|b \[c\](d)\<e\>\`f\`\*g\*" + "\\\\"
    assert cells.markdown("@me") == "@\u200bme"


def test_a_cell_of_latex_has_no_command():
    assert cells.latex("\\input{x}&~^\n_") == (
        r"\textbackslash{}input\{x\}\&\textasciitilde{}\textasciicircum{} \_"
    )


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What a sweep prints, of a model and a suite with hostile names."""
    folder = tmp_path_factory.mktemp("sweep")
    card = tiny.card(folder / "model", name="=cmd|'/c calc'!A0")
    data = tiny.data(folder / "data", each=1)
    (folder / "suite.yaml").write_text(SUITE)

    def run(*form):
        from contextlib import redirect_stdout

        out = io.StringIO()
        words = ["sweep", "--suite", folder / "suite.yaml", "--model",
                 card, "--data", data, "--out", folder / form[-1], *form]  # fmt: skip
        with redirect_stdout(out):
            assert cli.main([str(word) for word in words]) == 0
        return out.getvalue()

    return run


def test_the_csv_of_a_sweep(printed):
    rows = list(csv.reader(io.StringIO(printed("--format", "csv").partition("report:")[0])))

    assert rows[1][:3] == ["'=cmd|'/c calc'!A0", "train", "train"]
    assert rows[2][:3] == ["'=cmd|'/c calc'!A0", "'=1+1", "'@SUM(A1)|_x_"]


@pytest.mark.parametrize(
    ("table", "name"),
    [("models", r"=cmd\|'/c calc'!A0"), ("options", "=1+1: @\u200bSUM(A1)\\|_x_")],
)
def test_the_markdown_of_a_sweep(printed, table, name):
    text = printed("--table", table)
    table = [line for line in text.splitlines() if line.startswith("|")]

    assert name in text
    assert len({line.replace(r"\|", "").count("|") for line in table}) == 1


def test_the_records_of_a_report(cache, tmp_path):
    card, data = tiny.card(tmp_path / "model", labels=None), tmp_path / "data"
    data.mkdir()
    for name in ("=1+1.jpg", "-2.jpg", "@x.jpg", "plain.jpg"):
        (data / name).write_bytes(tiny.encoded(tiny.picture(tiny.COLORS["red"])))
    words = ["--train", "pillow_fp32", "--deploy", "pillow_fp32", "--model", card, "--data", data]
    code = cli.main([str(word) for word in (*words, "--out", tmp_path / "run")])

    packed = provenance.records(reading.read(tmp_path / "run"))

    assert code == 0
    rows = csv.DictReader(io.StringIO(gzip.decompress(base64.b64decode(packed)).decode()))
    assert {row["sample"] for row in rows} == {"'=1+1.jpg", "'-2.jpg", "'@x.jpg", "plain.jpg"}
    assert pa.parquet.read_table(Path(tmp_path / "run" / "records.parquet"))["sample"][0].as_py()

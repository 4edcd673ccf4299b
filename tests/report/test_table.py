"""One table in each form: figures by their column's unit, names that do nothing elsewhere."""

import io

from rich.console import Console

from simulator.report.rendering import shown
from simulator.report.table import Column, Table, as_csv, latex, markdown, screen
from simulator.typed import Unit

TABLE = Table(
    [Column("name"), Column("share", Unit.SHARE), Column("change", Unit.POINTS),
     Column("95 % interval", Unit.POINTS), Column("p", Unit.PROBABILITY), Column("n", Unit.COUNT)],
    [["=cmd|a_b", 0.12345, -0.00001, (-0.01, 0.025), 0.03456, 12_345],
     ["none", None, 0.015, None, None, None],
     ["words", "NC", "-", "", "", ""]],
    "What is shown",
)  # fmt: skip
READ = [
    ["=cmd|a_b", "12.35", "+0.00", "-1.00 to +2.50", "0.035", "12,345"],
    ["none", "–", "+1.50", "–", "–", "–"],
    ["words", "NC", "-", "", "", ""],
]


def test_a_figure_is_written_as_its_column_says():
    assert TABLE.lines() == READ


def test_markdown_has_a_line_a_row_and_no_further_columns():
    first, rule, one, *_ = markdown(TABLE).splitlines()

    assert first == "| name | share | change | 95 % interval | p | n |"
    assert rule == "| --- | --- | --- | --- | --- | --- |"
    assert one == r"| =cmd\|a_b | 12.35 | +0.00 | -1.00 to +2.50 | 0.035 | 12,345 |"


def test_latex_puts_figures_to_the_right():
    begin, *_, end = latex(TABLE).splitlines()

    assert begin == r"\begin{tabular}{lrrrrr}" and end == r"\end{tabular}"
    assert r"=cmd|a\_b & 12.35 & +0.00" in latex(TABLE)


def test_csv_has_figures_as_they_are_and_no_formula():
    columns = [Column("name"), Column("share", Unit.SHARE), Column("95 %", Unit.POINTS)]
    table = Table(columns, [["=1+1", 0.12345, [-0.5, 0.25]], ["b", None, None]])

    assert as_csv(table) == ('name,share,"95 %, from","95 %, to"\n\'=1+1,0.12345,-0.5,0.25\nb,,,\n')


def test_the_screen_and_the_page_have_the_same_cells():
    console = Console(file=io.StringIO(), width=120)
    console.print(screen(TABLE))
    printed = console.file.getvalue()

    assert shown(TABLE) == READ and TABLE.right == 1
    assert all(cell in printed for row in READ for cell in row)
    assert "What is shown" in printed

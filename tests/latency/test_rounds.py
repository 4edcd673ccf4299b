"""Rounds on disk: what comes back is what was measured, and what is damaged is refused."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_results import start

from simulator.contract.stage import timed_steps
from simulator.errors import RunError
from simulator.latency import rounds
from simulator.latency.stream import Round
from simulator.latency.times import NEVER, Times
from simulator.results.parts import write_part
from simulator.results.store import RunWriter
from simulator.results.times import ABSENT

STAGES = timed_steps()
SIDES, SAMPLES = ("train", "deploy"), ("a/1.jpg", "ä 2.png", "c.jpg")


def some(number, seed=0, stacks=2, n=3):
    """A round in which some stages are absent and one sample of the last stack failed."""
    rng = np.random.default_rng((seed, number))
    ns = rng.integers(0, 10**9, (stacks, n, len(STAGES)))
    ns[:, :, 0] = ns[-1, -1] = ABSENT
    digests = np.array([[rng.bytes(16).hex() for _ in range(n)] for _ in range(stacks)])
    digests[-1, -1] = ""
    told = {"load": 0.1 + 0.2, "mhz": [2399.998, 1e-9], "collections": {"count": 3, "ms": 1 / 3}}
    failed = {(stacks - 1, n - 1): 'infer: it\'s "hot"\n'}
    return Round(number, ns, digests, failed, told, {(0, 1): (3, 3, 2**40)})


def same(one, other):
    assert one.number == other.number
    assert one.ns.dtype == other.ns.dtype and one.ns.tobytes() == other.ns.tobytes()
    assert one.digests.tolist() == other.digests.tolist()
    assert one.failed == other.failed
    assert one.conditions == other.conditions
    assert one.parts == other.parts


@pytest.fixture
def run(tmp_path):
    with RunWriter(tmp_path / "run", start(), [], overwrite=False) as writer:
        yield writer


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def measured(draw):
    """Sides, samples and a round of them; any number of int64, any reason, any digest."""
    sides = draw(st.lists(words, min_size=1, max_size=3, unique=True))
    samples = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    shape = len(sides), len(samples)
    ns = st.one_of(st.just(ABSENT), st.integers(0, 2**63 - 1))
    size = shape[0] * shape[1] * len(STAGES)
    values = draw(st.lists(ns, min_size=size, max_size=size))
    digest = st.one_of(st.just(""), st.text("0123456789abcdef", min_size=32, max_size=32))
    digests = draw(st.lists(digest, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    keys = st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1))
    number = st.floats(allow_nan=False, allow_infinity=False)
    told = {"load": draw(number), "mhz": draw(st.lists(number, max_size=3))}
    return sides, samples, Round(
        0,
        np.array(values, np.int64).reshape(*shape, len(STAGES)),
        np.array(digests, "<U32").reshape(shape),
        draw(st.dictionaries(keys, words, max_size=3)),
        told,
    )  # fmt: skip


@given(measured())
@settings(max_examples=60, deadline=None)
def test_a_round_survives_the_disk(case):
    sides, samples, one = case
    with (
        tempfile.TemporaryDirectory() as folder,
        RunWriter(Path(folder) / "run", start(), [], overwrite=False) as run,
    ):
        rounds.keep(run, one, sides, samples)
        (back,) = rounds.kept(run.folder, sides, samples)
        rounds.merge(run, {}, samples)
        table = pq.read_table(run.folder / rounds.LATENCIES)

    same(one, back)
    assert table["sample"].to_pylist() == samples * len(sides)


def test_rounds_come_back_in_their_order(run):
    """Twelve, so that 10 comes after 9 and not after 1."""
    for number in reversed(range(12)):
        rounds.keep(run, some(number), SIDES, SAMPLES)

    back = rounds.kept(run.folder, SIDES, SAMPLES)

    assert len(back) == 12
    for number, one in enumerate(back):
        same(some(number), one)


def test_no_round_yet(run):
    assert rounds.kept(run.folder, SIDES, SAMPLES) == []


def test_merged_is_one_table_of_all_rows(run):
    for number in range(3):
        rounds.keep(run, some(number), SIDES, SAMPLES)
    rounds.merge(run, {}, SAMPLES)

    table = pq.read_table(run.folder / "latencies.parquet")

    assert table.schema.equals(rounds.SCHEMA)
    assert table.schema.metadata is None
    rows = table.to_pylist()
    keys = [(row["round"], row["side"], row["sample"]) for row in rows]
    assert keys == [(r, side, name) for r in range(3) for side in SIDES for name in SAMPLES]
    last = some(2)
    assert dict(rows[-2]["ns"])["infer"] == last.ns[1, 1, STAGES.index("infer")]
    assert rows[-2]["total_ns"] == last.ns[1, 1][last.ns[1, 1] >= 0].sum()
    assert rows[-2]["digest"] == last.digests[1, 1] and rows[-2]["failed"] is None
    assert rows[-1] == {
        "round": 2, "side": "deploy", "sample": "c.jpg", "digest": None,
        "failed": "infer: it's \"hot\"\n", "ns": [], "total_ns": None,
        "parts_ns": None,
    }  # fmt: skip


def test_rounds_of_a_log_follow_those_that_were_measured(run):
    stages = {"decode": np.array([[1, 2, 3]]), "infer": np.array([[10, 20, 30]])}
    device = Times(np.array([[11, 22, NEVER]]), stages, "device.csv")
    board = Times(np.array([[7, 8, 9], [4, 5, 6]]), {}, "board.csv")
    rounds.keep(run, some(0), SIDES, SAMPLES)
    rounds.merge(run, {"device": device, "board": board}, SAMPLES)

    table = pq.read_table(run.folder / "latencies.parquet").to_pylist()[len(SIDES) * len(SAMPLES) :]

    assert [tuple(row[name] for name in ("side", "round", "sample", "ns", "total_ns", "digest"))
            for row in table] == [
        ("device", 0, "a/1.jpg", [("decode", 1), ("infer", 10)], 11, None),
        ("device", 0, "ä 2.png", [("decode", 2), ("infer", 20)], 22, None),
        ("device", 0, "c.jpg", [("decode", 3), ("infer", 30)], None, None),
        ("board", 0, "a/1.jpg", [], 7, None),
        ("board", 0, "ä 2.png", [], 8, None),
        ("board", 0, "c.jpg", [], 9, None),
        ("board", 1, "a/1.jpg", [], 4, None),
        ("board", 1, "ä 2.png", [], 5, None),
        ("board", 1, "c.jpg", [], 6, None),
    ]  # fmt: skip


def file_of(run, number=1):
    return run.folder / "rounds" / f"{number:09d}.parquet"


USES = [
    lambda run: rounds.kept(run.folder, SIDES, SAMPLES),
    lambda run: rounds.merge(run, {}, SAMPLES),
]


@pytest.mark.parametrize("share", [0, 0.3, 0.7, 0.99])
@pytest.mark.parametrize("use", USES)
def test_a_truncated_file_is_named(run, share, use):
    for number in range(3):
        rounds.keep(run, some(number), SIDES, SAMPLES)
    content = file_of(run).read_bytes()
    file_of(run).write_bytes(content[: int(share * len(content))])

    with pytest.raises(RunError) as refused:
        use(run)

    told = str(refused.value)
    assert told.startswith(f"{file_of(run)}: damaged: ") and "\n" not in told
    assert told.endswith("; delete it and the rounds after it to measure them again")


def test_a_gap_is_refused(run):
    """Else round 3 would be measured as a second round 2."""
    for number in (0, 2):
        rounds.keep(run, some(number), SIDES, SAMPLES)

    with pytest.raises(RunError, match=r"2\.parquet: 000000001\.parquet is missing before it"):
        rounds.kept(run.folder, SIDES, SAMPLES)


@pytest.mark.parametrize(
    ("sides", "samples", "says"),
    [
        (SIDES, SAMPLES[:2], "4 rows expected, got 6"),
        (("deploy",), SAMPLES, "3 rows expected, got 6"),
        (SIDES[::-1], SAMPLES, "it holds other stacks or samples"),
        (SIDES, SAMPLES[::-1], "it holds other stacks or samples"),
        (SAMPLES, SIDES, "it holds other stacks or samples"),
    ],
)
def test_a_round_of_other_samples_is_refused(run, sides, samples, says):
    rounds.keep(run, some(0), SIDES, SAMPLES)

    with pytest.raises(RunError, match=f"{file_of(run, 0)}: {says}; delete it"):
        rounds.kept(run.folder, sides, samples)


@pytest.mark.parametrize(
    ("metadata", "columns", "says"),
    [
        (None, None, ""),
        ({b"conditions": b"{"}, None, ""),
        ({b"other": b"{}"}, None, ""),
        ({b"conditions": b"{}"}, ["round"], ": other columns: round; delete it"),
    ],
)
def test_a_table_that_is_no_round_is_refused(run, metadata, columns, says):
    rounds.keep(run, some(0), SIDES, SAMPLES)
    table = pq.read_table(file_of(run, 0), columns=columns).replace_schema_metadata(metadata)
    write_part(table, file_of(run, 0))

    with pytest.raises(RunError, match=rf"000000000\.parquet: damaged{says}"):
        rounds.kept(run.folder, SIDES, SAMPLES)


def test_half_a_file_of_an_interrupted_write_is_passed_over(run):
    rounds.keep(run, some(0), SIDES, SAMPLES)
    (run.folder / "rounds" / ".000000001.parquet.part").write_bytes(b"PAR1")

    assert len(rounds.kept(run.folder, SIDES, SAMPLES)) == 1

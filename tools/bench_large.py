"""Large data: the memory of a million samples, and the report of a million records.

    python tools/bench_large.py [--samples 1000000] [--run RUN]

RUN is a finished run of two stacks over a few images: its records are written again and again under
other names, with digests of their own, until there are as many as samples are asked for.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.data.archive import Archive
from simulator.data.folder import Dataset, Item
from simulator.data.parquet import Cell
from simulator.data.tar import TarMember
from simulator.results.layout import MANIFEST, RECORDS, SUMMARY

SECONDS, BYTES = 10, 15_000_000
"""Limits of a report of a million records."""


def enlarged(run: Path, count: int, out: Path) -> None:
    """Write a run with *count* made-up records, two for each sample."""
    shutil.copytree(run, out)
    found = pq.read_table(run / RECORDS)
    samples = count // 2
    pairs = np.arange(samples) % (found.num_rows // 2)
    rows = found.take(pa.array(np.stack([2 * pairs, 2 * pairs + 1], 1).ravel()))
    names = [f"class/{number:07d}.jpg" for number in range(samples)]
    digests = [
        hashlib.blake2b(b"%d" % number, digest_size=16).hexdigest() for number in range(count)
    ]
    for name, values in (("sample", np.repeat(np.array(names, object), 2)), ("digest", digests)):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, found.schema.field(name), pa.array(values, pa.string()))
    pq.write_table(rows, out / RECORDS, row_group_size=16384, write_page_checksum=True)
    manifest = json.loads((out / MANIFEST).read_text())
    for key in ("images", "truth"):
        known = list(manifest["data"][key].values())
        manifest["data"][key] = {name: known[at] for name, at in zip(names, pairs, strict=True)}
    (out / MANIFEST).write_text(json.dumps(manifest))
    summary = json.loads((out / SUMMARY).read_text())
    (out / SUMMARY).write_text(json.dumps({**summary, "samples": samples}))


def report(run: Path) -> tuple[float, float, int]:
    """Seconds of a clock and of the processor that `simulate report` takes, and its bytes."""
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom simulator.report import page\n"
        "start = time.perf_counter()\npage.write(Path(sys.argv[1]))\n"
        "print(time.perf_counter() - start, time.process_time())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True
    )
    wall, processor = map(float, done.stdout.split())
    return wall, processor, (run / "report.html").stat().st_size


def compared(run: Path) -> tuple[float, float]:
    """Seconds of the processor that `simulate compare-runs` takes, and its MiB at most."""
    code = (
        "import resource, sys, time\nfrom simulator.audit.two_runs import compare_runs\n"
        "compare_runs(sys.argv[1], sys.argv[1])\n"
        "most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(time.process_time(), most / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True
    )
    processor, most = map(float, done.stdout.split())
    return processor, most


def bytes_per_sample(make: Iterator[Item], count: int) -> float:
    """The memory of a data set, by tracemalloc."""
    tracemalloc.start()
    found = Dataset(Path("data"), tuple(make))
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(found.items) == count
    return size / count


def files(count: int) -> Iterator[Item]:
    for at in range(count):
        name = f"n01440764/ILSVRC2012_val_{at:08d}.JPEG"
        yield Item(name, Path(f"/data/imagenet/val/{name}"), at % 1000)


def members(count: int) -> Iterator[Item]:
    some = [Archive(f"/data/val-{at:04d}.tar", 2**30, 10**18) for at in range(50)]
    for at in range(count):
        shard = some[at * 50 // count]
        place = TarMember(shard, 10**6 + 10**5 * at, 10**5 + at, sys.intern(".jpg"))
        yield Item(f"{shard.name}/ILSVRC2012_val_{at:08d}.jpg", place, at % 1000)


def cells(count: int) -> Iterator[Item]:
    some = [Archive(f"/data/val-{at:04d}.parquet", 2**30, 10**18) for at in range(50)]
    for at in range(count):
        shard = some[at * 50 // count]
        place = Cell(shard, "image.bytes", at % 20000 // 100, at % 100, sys.intern(".jpg"))
        yield Item(f"{shard.name}/{at % 20000:08d}.jpg", place, at % 1000)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--run", type=Path)
    options = parser.parse_args(arguments)
    for what, make in (("files", files), ("tar members", members), ("Parquet rows", cells)):
        size = bytes_per_sample(make(options.samples), options.samples)
        print(f"{options.samples:,} {what}: {size:,.0f} bytes for each, as --data keeps them")
    if options.run:
        with tempfile.TemporaryDirectory() as folder:
            enlarged(options.run, options.samples, Path(folder, "run"))
            wall, processor, size = report(Path(folder, "run"))
            again, most = compared(Path(folder, "run"))
        print(
            f"report of {options.samples:,} records: {wall:.1f} s, {processor:.1f} s of the "
            f"processor ({processor / SECONDS:.2f} of the limit), {size / 1e6:.2f} MB "
            f"({size / BYTES:.2f} of the limit)"
        )
        print(
            f"compare-runs of {options.samples:,} records: {again:.1f} s of the processor, "
            f"{most:,.0f} MiB at most"
        )


if __name__ == "__main__":
    main()

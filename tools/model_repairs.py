"""Measure the repairs inside a model file: the tables of docs/repair.md.

    python tools/model_repairs.py int8 --model mobilenet_v2.yaml --data imagenet/train500
    python tools/model_repairs.py color --model cifar_resnet/model.yaml --data cifar/test

Some images calibrate; every option is run on all others, and its flips against the training stack
are compared with those of the deployment as it is: image by image, mid-p of McNemar's test.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from simulator.cli.progress import Bar
from simulator.contract.recipe import generator
from simulator.experiments.common import chosen
from simulator.experiments.session import Session, Variant
from simulator.statistics.paired import clopper_pearson, mcnemar_midp

QUANTIZER, GRAPH = "precision.quantizer", "graph.compensation"
CALIBRATED = [
    f"{QUANTIZER}.calibration.samples=SAMPLES",
    f"{QUANTIZER}.calibration.source=SOURCE",
]
CORRECTED = f"{QUANTIZER}.bias_correction=true"
STATISTICS = "graph.batchnorm.statistics={samples: SAMPLES, through: deploy, source: SOURCE}"
AFFINE, MATRIX = (
    f"{GRAPH}={{form: {form}, calibration: {{samples: SAMPLES, source: SOURCE}}}}"
    for form in ("affine", "matrix")
)
TABLES: dict[str, tuple[str, str, list[str], dict[str, list[str]]]] = {
    "int8": (
        "dali_fp32",
        "ascend_nv12_int8",
        CALIBRATED,
        {
            "as it is": [],
            "calibrated on the training stack's pixels": [f"{QUANTIZER}.calibration.through=train"],
            "one scale for all weights of a layer": [f"{QUANTIZER}.weights=per_tensor"],
            "the same, bias correction": [f"{QUANTIZER}.weights=per_tensor", CORRECTED],
            "bias correction": [CORRECTED],
            "compensation: affine": [AFFINE],
            "compensation: matrix": [MATRIX],
            "compensation: matrix, bias correction": [MATRIX, CORRECTED],
        },
    ),
    "color": (
        "pillow_bilinear_fp32",
        "pillow_bilinear_fp32",
        [
            "color={format: nv12, order: model, source: encode, odd_size: drop,"
            " encode: {backend: itu, matrix: bt601, range: full, chroma_downsampling: average},"
            " convert: {backend: aipp, preset: BT601_NARROW, chroma_upsampling: nearest}}",
        ],
        {
            "as it is": [],
            "batchnorm: statistics": [STATISTICS],
            "compensation: affine": [AFFINE],
            "compensation: matrix": [MATRIX],
            "compensation: matrix, batchnorm: statistics": [MATRIX, STATISTICS],
        },
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--model", metavar="CARD")
    parser.add_argument("--data", metavar="PATH")
    parser.add_argument("--samples", type=int, default=128, help="to calibrate; default 128")
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    train, deploy, common, table = TABLES[options.table]
    with (
        tempfile.TemporaryDirectory() as folder,
        Bar() as bar,
        Session.open(options.model, options.data, options.limit, 0, None, None, bar) as opened,
    ):
        items = opened.dataset.items
        order = generator("repairs", 0).permutation(len(items))
        for at in order[: options.samples]:
            place = Path(folder) / f"{at:05}{items[at].path.suffix}"
            os.symlink(items[at].path.resolve(), place)
        rest = tuple(items[at] for at in sorted(order[options.samples :]))
        session = opened.subset(rest).calibrating_on(rest, None)
        base = chosen(train, [])
        stacks = [session.stack(Variant("train", base, {"train": base, "deploy": base}))]
        for name, changes in table.items():
            own = [
                change.replace("SAMPLES", str(options.samples)).replace("SOURCE", folder)
                for change in (*common, *changes)
            ]
            one = chosen(deploy, own)
            stacks.append(session.stack(Variant(name, one, {"train": base, "deploy": one})))
            for note in stacks[-1].artifact.notes:
                bar.note(f"{name}: {note}")
        done = session.run(session.plan(stacks))
        found = done.answers(*(stack.side for stack in stacks))
    before = found.changed("as it is")
    metric = session.card.task.headline
    print(f"{len(before)} images; {metric} of {train}: {found.score('train').metrics[metric]}")
    for name in table:
        flips = found.changed(name)
        low, high = clopper_pearson(int(flips.sum()), len(flips))
        lost, won = int((flips & ~before).sum()), int((before & ~flips).sum())
        print(
            f"| {name} | {100 * flips.mean():.1f} ({100 * low:.1f} to {100 * high:.1f}) "
            f"| {won - lost:+d} | {mcnemar_midp(lost, won):.2g} "
            f"| {found.score(name).metrics[metric]:.4f} |"
        )


if __name__ == "__main__":
    main()

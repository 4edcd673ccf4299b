"""Flips against the size of the network's input, where images differ in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.experiments.session import Session
from simulator.notices import Kind, Notice
from simulator.pipeline.inference import Answer
from simulator.pipeline.stack import Stack
from simulator.tasks.score import Record

LEAST = 8
"""Samples of a quarter, at least."""


def by_size(
    session: Session, stacks: Sequence[Stack], ran: Sequence[Item], changes: Sequence[Record]
) -> list[Notice]:
    """Return the flips in quarters of the samples by the pixels of the network's input.

    Args:
        session: reads the samples.
        stacks: the pixels are those of the first that takes images of several sizes.
        ran: the samples.
        changes: what changed in each.
    """
    lasts = {stack.side: stack.chain.last for stack in stacks}
    found = [(side, last.placing) for side, last in lasts.items()
             if isinstance(last, Answer) and getattr(last.placing, "any_size", False)]  # fmt: skip
    if not found or len(ran) < 4 * LEAST:
        return []
    (side, placing), *_ = found
    try:
        places = [placing(session.executor.context(item).source) for item in ran]
    except SampleError:  # a file is gone since it was run
        return []
    pixels = np.array([one.network_height * one.network_width for one in places])
    counts = np.array([[one["changed"], one["units"]] for one in changes], np.int64)
    if len(np.unique(pixels)) < 2:
        return []
    edges = np.unique(np.quantile(pixels, (0.25, 0.5, 0.75, 1), method="higher"))
    quarter = np.searchsorted(edges, pixels)
    parts = []
    for at, most in enumerate(edges.tolist()):
        changed, units = counts[quarter == at].sum(axis=0)
        if units:
            parts.append(f"to {most:,} pixels {changed} of {units} ({changed / units:.1%})")
    known = counts[:, 1] > 0
    shares = counts[known, 0] / counts[known, 1]
    if len(np.unique(shares)) > 1 and len(np.unique(pixels[known])) > 1:
        from scipy import stats

        rho, p = stats.spearmanr(pixels[known], shares)
        parts.append(f"rank correlation by {session.card.modality.unit} {rho:+.2f}, p {p:.2g}")
    return [Notice(Kind.FINDING, f"flips by {side}'s input: {'; '.join(parts)}")]

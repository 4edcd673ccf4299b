"""One stack of a card, built and walked as a session does it."""

from __future__ import annotations

from simulator.contract.recipe import Chain
from simulator.experiments.common import chosen
from simulator.experiments.session import Session
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan


def outputs(card, data, profile, *changes):
    """Build one stack and walk one sample: the input of its network, the stack, the outputs."""
    with Session.open(card, data, None, 0, 1, None, None) as session:
        one = chosen(profile, changes)
        stack = session.builder.stack("deploy", one, {"train": one, "deploy": one})
        executor = LocalExecutor(session.card.modality, session.builder.runtimes, workers=1)
        item = session.dataset.items[0]
        found = []
        for last in (-2, -1):
            chain = Chain(stack.chain.recipes[:last])
            opened = executor.open(plan({Arm("one"): chain}))
            (value,) = opened.walk(executor.context(item)).answers()
            found.append(value)
        return found[0], stack, found[1].outputs

"""Where in an audit's document a problem is that only shows when files are opened."""

from __future__ import annotations

import os
from collections.abc import Iterator

from simulator.audit.document import Audit
from simulator.profile.document import Key
from simulator.profile.suite import overrides


def missing_files(audit: Audit) -> Iterator[str]:
    """Name the model cards and images that are not there, each as ``file:line: key: what``."""
    for model, spec in audit.spec.models.items():
        card, data = audit.card(model), audit.data(model)
        if card is not None and not os.path.isfile(card):
            yield _line(audit, ("models", model, "card"), f"there is no file {card}")
        if data is not None and not os.path.exists(data):
            key: Key = ("models", model, "data") if spec.data else ("data",)
            yield _line(audit, key, f"there is no file or folder {data}")


def located(audit: Audit, problem: str) -> str:
    """Say where in the document a value stands, of which a message says ``--set STACK.KEY=``."""
    for name, stack, key in audit.stacks():
        for field, override in zip(stack.set, overrides(stack.set), strict=True):
            told = f"--set {name}.{override}: "
            if problem.startswith(told):
                what = problem.removeprefix(told).removeprefix(f"{field}: ")
                return _line(audit, (*key, "set", field), what)
    return problem


def _line(audit: Audit, key: Key, what: str) -> str:
    return f"{audit.document.where(key)}: {'.'.join(map(str, key))}: {what}"

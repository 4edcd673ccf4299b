"""The report of a rewrite of one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """A node that belongs to an axis.

    Attributes:
        kind: the operator, or the name of the pattern: ``MaxPool``, ``Gelu``.
        setting: its setting in words.
        effect: everything that decides its values in this model; equal effects give equal values.
        size: the shape of its output, if that may change.
    """

    kind: str
    setting: Hashable
    effect: Hashable
    size: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """The nodes of one axis before and after a rewrite, by the name of their first output.

    Attributes:
        axis: the axis.
        nodes: the operators that belong to it, for messages.
        before: the nodes as the model has them.
        after: the same nodes after the rewrite.
        silent: why a rewritten node may still compute the same.
        notes: other remarks, for example about nodes that it cannot change.
    """

    axis: str
    nodes: str
    before: Mapping[str, Seen]
    after: Mapping[str, Seen]
    silent: str = ""
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> int:
        """The number of nodes of this axis in the model."""
        return len(self.before)

    @property
    def rewritten(self) -> int:
        """The number of nodes whose setting changed."""
        return sum(seen.setting != self.after[name].setting for name, seen in self.before.items())

    @property
    def effective(self) -> int:
        """The number of rewritten nodes that now compute different values."""
        return sum(
            seen.setting != self.after[name].setting and seen.effect != self.after[name].effect
            for name, seen in self.before.items()
        )

    def __str__(self) -> str:
        return "; ".join((self._counts(), *self.notes))

    def _counts(self) -> str:
        if not self.found:
            return self.absent
        if not self.rewritten:
            return f"none of {self.found} {self.axis} nodes needs a change"
        words = []
        kinds = Counter(seen.kind for seen in self.before.values())
        for kind, count in kinds.items():
            pairs = [(s, self.after[n]) for n, s in self.before.items() if s.kind == kind]
            changed = [(a, b) for a, b in pairs if a.setting != b.setting]
            if changed:
                quiet = sum(a.effect == b.effect for a, b in changed)
                rest = f", {quiet} without effect{self.silent and f' because {self.silent}'}"
                words.append(f"{len(changed)} of {count} {kind} changed{rest if quiet else ''}")
        return ", ".join(words)

    @property
    def absent(self) -> str:
        """A message that the model has no node of this axis."""
        return f"this axis does not exist in this model: it has no {self.nodes}"


def difference(train: Change, deploy: Change) -> tuple[int, str]:
    """Compare one axis of two stacks that started from the same model.

    Returns:
        The number of nodes that compute different values, and a sentence about it.
    """
    pairs = [(seen, deploy.after[name]) for name, seen in train.after.items()]
    if not pairs:
        return 0, train.absent
    verbs = [
        "compute other values" if a.size == b.size else "give another output size"
        for a, b in pairs
        if a.effect != b.effect
    ]
    if not verbs:
        set_anew = sum(a.setting != b.setting for a, b in pairs)
        why = f" because {deploy.silent}" if set_anew and deploy.silent else ""
        return 0, f"none of {len(pairs)} {train.axis} nodes computes anything else{why}"
    words = [f"{n} of {len(pairs)} {train.axis} nodes {verb}" for verb, n in Counter(verbs).items()]
    return len(verbs), ", ".join(words)

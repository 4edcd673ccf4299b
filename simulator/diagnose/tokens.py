"""Name what differs between the ids of tokens that two stacks give the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simulator.diagnose.finding import Certainty, Finding, Part
from simulator.modalities.text.card import TextCard, TextInput

_Ids = list[int]


def name_tokens(train: Sequence[Any], deploy: Sequence[Any], card: TextCard) -> list[Finding]:
    """Name the difference of the ids, or of padding and mask where these are equal.

    Args:
        train: of each text the network's inputs by name, or several of these.
        deploy: likewise, of the same texts.
        card: of the model.
    """
    before, after = ([_rows(one, card.input) for one in some] for some in (train, deploy))
    pairs = [
        (a, b) for ours, theirs in zip(before, after, strict=True)
        for a, b in zip(ours, theirs, strict=False)
    ]  # fmt: skip
    if not pairs:
        return []
    told = (f"tokens of the first text: {pairs[0][1][:6]} in place of {pairs[0][0][:6]}",)
    for name, code, change in _named(pairs):
        return [Finding(Part.FRONT_END, name, told, Certainty.EXACT, 0.0, change, code)]
    other = sum(a != b for a, b in pairs)
    name = f"the ids of {other} of {len(pairs)} texts are others: another tokenizer"
    code = "use the training's tokenizer with its settings"
    return [Finding(Part.FRONT_END, name, told, Certainty.NEAREST, code=code)]


def _rows(value: Any, spec: TextInput) -> list[_Ids]:
    """The ids of each text of a sample, without the padding that a mask names."""
    batches = [value] if isinstance(value, Mapping) else list(value)
    found = []
    for batch in batches:
        ids = np.atleast_2d(batch[spec.names.ids])
        mask = batch.get(spec.names.mask) if spec.names.mask else None
        kept = np.ones(ids.shape, bool) if mask is None else np.atleast_2d(mask) > 0
        found += [row[there].tolist() for row, there in zip(ids, kept, strict=True)]
    return found


def _named(pairs: Sequence[tuple[_Ids, _Ids]]) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield what explains every row, a line of code and fields of a profile that undo it."""
    special = "tokenize.special_tokens"
    if all(a == b for a, b in pairs):
        yield "padding or mask differ, the ids do not", "pad and mask as in training", {}
    for at, where, kind in ((0, "start", "beginning"), (-1, "end", "end")):
        ends = [{one[at] for one in side if one} for side in zip(*pairs, strict=True)]
        rest = slice(1, None) if at == 0 else slice(None, -1)
        if all(a[rest] == b for a, b in pairs) and len(ends[0]) == 1:
            (token,) = ends[0]
            name = f"no token of the {kind} (id {token} is missing at the {where} of every text)"
            yield name, f"put id {token} at the {where} of the ids", {special: True}
        if all(a == b[rest] for a, b in pairs) and len(ends[1]) == 1:
            (token,) = ends[1]
            name = f"a token of the {kind} too many (id {token} at the {where} of every text)"
            text = f"leave out id {token}, e.g. with add_special_tokens=False"
            yield name, text, {special: False}
    longest = max(len(b) for _, b in pairs)
    cut = [(a, b) for a, b in pairs if a != b]
    for which, first in (("first", slice(longest)), ("last", slice(-longest, None))):
        if all(a[first] == b for a, b in cut):
            yield (
                f"texts are cut to the {which} {longest} tokens",
                "raise the tokenizer's limit",
                {},
            )

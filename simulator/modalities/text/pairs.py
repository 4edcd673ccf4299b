"""Requests as token ids, by the rules of lm-evaluation-harness; and what is done to over-long ones.

Source:
    lm_eval 0.4.13, ``TemplateLM.loglikelihood`` and ``_encode_pair`` (lm_eval/api/model.py),
    ``HFLM._loglikelihood_tokens`` (lm_eval/models/huggingface.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from simulator.contract.text import Passage, Request, Tokens
from simulator.errors import ModelError, SampleError

Encode = Callable[[str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the network says of ids.

    Attributes:
        vocabulary: every id is below it.
        prefix: the id that stands for an empty context; None where there is none.
    """

    vocabulary: int
    prefix: int | None

    def refuse(self, ids: Sequence[int], given: bool) -> None:
        """Refuse an id that the network has no embedding for.

        Args:
            ids: of a text.
            given: whether the sample brings them itself.

        Raises:
            SampleError: the sample brings such an id.
            ModelError: the tokenizer made it, so it is of another model.
        """
        most = max(ids, default=0)
        if most < self.vocabulary and min(ids, default=0) >= 0:
            return
        told = f"the network knows {self.vocabulary} ids, and this is {most}"
        if given:
            raise SampleError(f"ids: {told}")
        raise ModelError(f"{told}: its tokenizer is of another model")


def tokenized(passage: Passage, encode: Encode | None, limits: Limits) -> tuple[Tokens, ...]:
    """Return every request of a sample as token ids, context and continuation together.

    Args:
        passage: the sample.
        encode: of its tokenizer; None where samples bring their ids.
        limits: of the network.

    Raises:
        SampleError: a text becomes no ids, or there is no tokenizer for it.
        ModelError: the ids are those of another network.
    """
    found, once = [], cache(encode) if encode else None  # choices share their context
    for number, request in enumerate(passage.requests):
        try:
            tokens = _tokens(request, once, limits.prefix)
        except SampleError as error:
            raise SampleError(f"request {number}: {error}") from error
        limits.refuse(tokens.ids, request.ids is not None)
        found.append(tokens)
    return tuple(found)


def truncated(tokens: Tokens, longest: int, side: str) -> Tokens:
    """Return the ids that fit into the network; the continuation always stays whole.

    The network is not fed the last id of a continuation, so one more fits where there is one.

    Args:
        tokens: a request.
        longest: ids that the network takes at most.
        side: where the context is cut, ``left`` or ``right``; or ``refuse``.

    Raises:
        SampleError: it is over-long and may not be cut, or its continuation alone is over-long.
    """
    scored = tokens.scored
    room = longest + (1 if scored else 0)
    over = len(tokens.ids) - room
    if over <= 0:
        return tokens
    told = f"{len(tokens.ids) - bool(scored):,} tokens, and the network takes {longest:,}"
    if side == "refuse":
        raise SampleError(f"over-long: {told}")
    if tokens.start - over < (1 if scored else 0):
        raise SampleError(f"over-long: {told}, and {len(scored):,} are the continuation's")
    context = tokens.ids[: tokens.start]
    kept = context[over:] if side == "left" else context[: len(context) - over]
    return replace(tokens, ids=(*kept, *scored), start=len(kept), cut=over)


def fed(tokens: Tokens) -> tuple[int, ...]:
    """Return the ids that the network takes: without the last one of a continuation."""
    return tokens.ids[:-1] if tokens.scored else tokens.ids


def _tokens(request: Request, encode: Encode | None, prefix: int | None) -> Tokens:
    if request.ids is not None:
        return Tokens(request.ids, len(request.ids) - request.scored)
    if encode is None:
        raise SampleError("no ids, and the stack has no tokenizer")
    context, continuation = _ids(request, encode, prefix)
    if not context:
        what = "the context is empty" if not request.context else "the context becomes no tokens"
        raise SampleError(f"{what}, and the model card names no input.prefix")
    if request.continuation and not continuation:
        raise SampleError("the continuation becomes no tokens")
    return Tokens((*context, *continuation), len(context))


def _ids(
    request: Request, encode: Encode, prefix: int | None
) -> tuple[Sequence[int], Sequence[int]]:
    """The ids of context and continuation."""
    before = () if prefix is None else (prefix,)
    if not request.continuation:
        return encode(request.context) or before, ()
    if not request.context:
        alone = encode(request.continuation)
        if alone and alone[0] == prefix:
            return alone[:1], alone[1:]
        return before, alone
    context = request.context.rstrip()
    together = encode(request.context + request.continuation)
    first = encode(context)
    return (first, together[len(first) :]) if first else (before, together)

"""What the conformance suite tries the tasks of texts with."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from simulator.contract import Array
from simulator.contract.text import Row, Tokens
from simulator.tasks.embedding.task import Ordered
from simulator.tasks.generation.task import Written
from simulator.tasks.multiple_choice.task import Chosen
from simulator.tasks.next_token.task import Distribution
from simulator.tasks.next_word.task import Word
from simulator.tasks.settings import Network
from simulator.tasks.specimen import Specimen
from simulator.tasks.task import Task

VOCABULARY = 7
_NETWORK = Network(None, SimpleNamespace(vocabulary=VOCABULARY))
_CONTEXT = (3, 4)
_CHOICES = ((1,), (2, 5), (6, 1, 2))


def _logits(rows: list[tuple[int, ...]], sure: int | None, width: int) -> Array:
    """Return (rows, width, vocabulary) float32 logits that are high for the tokens of one row."""
    values = np.random.default_rng(5).normal(0, 0.1, (len(rows), width, VOCABULARY))
    for number, ids in enumerate(rows):
        for place, wanted in enumerate(ids[1:]):
            values[number, place, wanted] += 5 if number == sure else -1
    return values.astype(np.float32)


def questions(task: type[Task]) -> dict[str, Specimen]:
    """Return a question of three choices, as one batch and as three inferences."""
    ids = [_CONTEXT + choice for choice in _CHOICES]
    width = max(map(len, ids)) - 1
    made = task(task.Output(), _NETWORK)
    worthless = [
        (0, Chosen((-9.0, -1.0, -9.0), (1, 1, 1))),
        (2, Chosen((0.0, -1e30, -1e30), (1, 1, 1))),
        (1, Chosen((-1.0, -1.0, -1.0), (1, 1, 1))),
    ]

    def rows(several: bool) -> tuple[Row, ...]:
        made = []
        for number, one in enumerate(ids):
            where = (number, 0) if several else (0, number)
            made.append(Row(*where, 0, Tokens(one, len(_CONTEXT)), len(one)))
        return tuple(made)

    whole = [{"logits": _logits(ids, sure, width)} for sure in (1, 2)]
    parts = [
        tuple({"logits": one["logits"][at : at + 1, : len(ids[at]) - 1]} for at in range(len(ids)))
        for one in whole
    ]
    return {
        "one batch": Specimen(made, ((whole[0],), (whole[1],)), rows(False), 1, worthless),
        "three inferences": Specimen(made, (parts[0], parts[1]), rows(True), 1, worthless),
    }


def passage(task: type[Task]) -> Specimen:
    """Return a passage of two tokens with a word of two tokens, padded on the left by one."""
    ids = (3, 4, 6, 1)
    made = task(task.Output(), _NETWORK)
    outputs = []
    for sure in (0, None):
        logits = _logits([ids], sure, len(ids) - 1)
        padded = np.concatenate([np.zeros((1, 1, VOCABULARY), np.float32), logits], axis=1)
        outputs.append(({"logits": padded},))
    worthless = [("signs", Word(False, -9.0, (1, 1))), ("a", Word(False, -1e30, (0, 0)))]
    row = Row(0, 0, 1, Tokens(ids, 2))
    return Specimen(made, (outputs[0], outputs[1]), (row,), "signs", worthless)


def chunk(task: type[Task]) -> Specimen:
    """Return a chunk of four tokens, of which the last two are scored."""
    ids = (3, 4, 6, 1)
    made = task(task.Output(), _NETWORK)
    outputs = [({"logits": _logits([ids], sure, len(ids) - 1)},) for sure in (0, None)]
    flat = np.zeros((2, VOCABULARY), np.float32)
    lost = np.where(np.arange(VOCABULARY) == 0, 60.0, flat).astype(np.float32)
    worthless = [([6, 1], Distribution.of([6, 1], one)) for one in (flat, lost)]
    row = Row(0, 0, 0, Tokens(ids, 2))
    return Specimen(made, (outputs[0], outputs[1]), (row,), [6, 1], worthless)


def sentences(task: type[Task]) -> dict[str, Specimen]:
    """Return a query and three texts of three tokens: as vectors, and as states of tokens."""
    tokens = Tokens((1, 2, 3), 3)
    found = {}
    for pooling in ("none", "mean", "first", "last"):
        made = task(task.Output(pooling=pooling), _NETWORK)
        outputs = []
        for nearest in (1, 2):
            vectors = np.random.default_rng(nearest).normal(0, 0.1, (4, 5)).astype(np.float32)
            vectors[0] = vectors[nearest + 1]
            shown = vectors if pooling == "none" else np.repeat(vectors[:, None], 3, axis=1)
            outputs.append(({"vectors": shown},))
        rows = tuple(Row(0, number, 0, tokens) for number in range(4))
        far = _ordered([-1.0, 1.0, 0.5])
        worthless = [(0, far), (1, _ordered([1.0, -1.0, 0.0])), (2, _ordered([0.0, 0.0, 0.0]))]
        found[pooling] = Specimen(made, (outputs[0], outputs[1]), rows, 1, worthless)
    return found


def _ordered(cosines: list[float]) -> Ordered:
    vectors = np.zeros((4, 5))
    vectors[:, 0] = [1.0, *cosines]
    order = tuple(np.argsort(-np.array(cosines), kind="stable").tolist())
    return Ordered(order, tuple(cosines), vectors)


def continued(task: type[Task]) -> Specimen:
    """Return a text of two tokens that is written on by three, the last of which ends it."""
    made = task(task.Output(tokens=3, stop=[0]), _NETWORK)
    outputs = []
    for ids in ((5, 2, 0), (5, 3, 0)):
        logits = _logits([(0, *ids)], 0, len(ids))
        outputs.append(tuple({"logits": logits[:, at : at + 1]} for at in range(len(ids))))
    row = Row(0, 0, 0, Tokens((3, 4), 2), text=lambda ids: " ".join("abcdefg"[one] for one in ids))
    worthless = [("a b", Written((), "")), ("c", Written((1, 2), "a b")), ("x", Written((9,), "g"))]
    return Specimen(made, (outputs[0], outputs[1]), (row,), "f c", worthless)

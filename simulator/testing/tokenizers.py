"""Tokenizers: texts that come back, ids within the vocabulary, options in force, bad files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import SampleError
from simulator.testing import vocabularies
from simulator.testing.subject import Failed, Subject, expect, refused, words
from simulator.testing.values import one_line, values
from simulator.testing.work import Job, Work, working

TEXTS = (
    "The water is in the can.",
    "  two  blanks, a\ttab\nand a line",
    "In 2026 there were 12,345 of them",
    "caf\u00e9 \u20ac \u4f60\u597d \U0001f600",
)
"""Texts that NFC and NFKC leave alone."""
ODD = ("\x00", "\r", "\u202e\u0301\ufffe", "<s></s>", " " * 5000, "\U0010ffff", "a" * 5000)
TELLING = ("e\u0301 \ufb01", "<s> is", "2020 is 20", "is")
"""Texts whose ids depend on the normalizer, special tokens, the pre-tokenizer and the prefix."""
LONG = 8192
"""Characters of a job: a result that is kept is heard (:data:`simulator.testing.repeats.LEAK`)."""


class Tokenizing(Work):
    """A job is the UTF-8 of a text; the result its ids."""

    @contextmanager
    def _open(self) -> Iterator[Any]:
        yield made(self.subject)

    def _jobs(self) -> list[Job]:
        texts = [text * (LONG // len(text)) for text in TEXTS]
        return [(np.frombuffer(text.encode(), np.uint8),) for text in texts]

    def _do(self, made: Any, job: Job) -> Job:
        return (np.array(made.encode(job[0].tobytes().decode()), np.int64),)


def texts_come_back(subject: Subject) -> None:
    """What ``decode`` makes of a text's ids has the text in it; other values may add blanks."""
    for variant in working(subject):
        tokenizer = made(variant)
        plain = variant.options == subject.options
        for text in TEXTS:
            back = tokenizer.decode(tokenizer.encode(text))
            whole = text in back if plain else "".join(text.split()) in "".join(back.split())
            expect(whole, f"{words(variant)}: {text!r} expected back, got {back!r}")


def ids_are_within_the_vocabulary(subject: Subject) -> None:
    """Ids are integers from 0 to ``size``, which is the number of ids in the file."""
    tokenizer = made(subject)
    size = tokenizer.size
    known = vocabularies.SIZES[subject.offer.make.takes]
    expect(size == known, f"a size of {known} expected, got {size}")
    for text in TEXTS:
        ids = tokenizer.encode(text)
        inside = all(type(one) is int and 0 <= one < size for one in ids)
        expect(inside, f"ids from 0 to {size - 1} expected, got {ids}")


def each_id_has_its_piece(subject: Subject) -> None:
    """``pieces`` gives a text for each id; joined, plain ones are the text."""
    tokenizer, text = made(subject), TEXTS[0]
    ids = tokenizer.encode(text)
    pieces = tokenizer.pieces(ids)
    told = f"{len(ids)} pieces expected, got {pieces}"
    expect(len(pieces) == len(ids) and all(isinstance(piece, str) for piece in pieces), told)
    joined = "".join(pieces).replace("\u2581", " ").strip()
    expect(joined == text, f"{text!r} expected of the pieces, got {joined!r}")


def an_empty_text_is_nothing(subject: Subject) -> None:
    """An empty text has no ids, where no special tokens are added."""
    got = made(subject).encode("")
    expect(list(got) == [], f"no ids expected, got {got}")


def any_text_will_do(subject: Subject) -> None:
    """Control characters, long runs, written special tokens: ids, or a refusal in one line."""
    tokenizer = made(subject)
    for text in ODD:
        try:
            ids = tokenizer.encode(text)
        except SampleError as error:
            expect("\n" not in str(error), f"{text[:9]!r}: refused in several lines")
            continue
        except Exception as error:
            raise Failed(
                f"{text[:9]!r}: ids or a SampleError expected: {one_line(error)}"
            ) from error
        expect(len(ids) > 0, f"{text[:9]!r}: ids expected, got none")


def values_do_something(subject: Subject) -> None:
    """Of the values of a field, two at least give some text different ids."""
    for name, admits in subject.offer.options.items():
        changed = [subject.changed(**{name: value}) for value in values(admits)]
        found = [_ids(one) for one in changed]
        heard = [one for one in found if one is not None]
        told = f"{name}: different ids expected for some of its values, got the same for all"
        expect(len(heard) < 2 or any(one != heard[0] for one in heard), told)


def bad_vocabularies_are_refused(subject: Subject) -> None:
    """A missing, empty, cut or foreign file is refused in one line, and the process goes on."""
    takes = subject.offer.make.takes
    good = vocabularies.WRITERS[takes]()
    bad = {
        "missing": None,
        "empty": b"",
        "cut": good[: len(good) // 2],
        "short": good[:40],
        "noise": bytes(range(256)) * 16,
        "words": b"These are words, and no vocabulary.\n" * 9,
        "hollow": b'{"model": {}}',
        "strange": b'{"model": [1, null], "added_tokens": 7}',
    }
    for what, data in bad.items():
        file = subject.workshop.scratch(vocabularies.NAMES[takes])
        if data is not None:
            file.write_bytes(data)
        refused(f"a {what} vocabulary", subject.make, file)


def made(subject: Subject) -> Any:
    """Build a tokenizer on the suite's vocabulary."""
    format = subject.offer.make.takes
    expect(format in vocabularies.WRITERS, f"the suite has no vocabulary of the format {format!r}")
    file: Path = subject.workshop.scratch(vocabularies.NAMES[format])
    file.write_bytes(vocabularies.WRITERS[format]())
    return subject.make(file)


def _ids(subject: Subject) -> Sequence[Sequence[int]] | None:
    """The ids of the telling texts; None where the values cannot be built."""
    try:
        encode: Callable[[str], Sequence[int]] = made(subject).encode
        return [list(encode(text)) for text in TELLING]
    except Exception:  # every_admitted_value_works reports what is wrong
        return None

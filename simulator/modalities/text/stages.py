"""The stages of text, as entries of the stage table."""

from __future__ import annotations

from simulator.contract.stage import CLAIMS, REPEATS, StageSpec
from simulator.contract.text import Tokenizer

TOKENIZE = StageSpec(
    "tokenize",
    "a text becomes token ids",
    100,
    modality="text",
    section=("tokenize",),
    axis="tokenize",
    step="tokenize",
    base=Tokenizer,
    calls=("encode",),
    own=("truncation_side",),
    work="simulator.testing.tokenizers:Tokenizing",
    checks=(
        *CLAIMS,
        *(
            f"simulator.testing.tokenizers:{check}"
            for check in (
                "texts_come_back",
                "ids_are_within_the_vocabulary",
                "each_id_has_its_piece",
                "an_empty_text_is_nothing",
                "any_text_will_do",
                "values_do_something",
                "bad_vocabularies_are_refused",
            )
        ),
        "simulator.testing.manners:instances_do_not_mix",
        *REPEATS,
    ),
)
FEEDS = StageSpec(
    "feeds",
    "token ids become the network's inputs",
    500,
    modality="text",
    section=("feeds",),
    axis="feeds",
    step="feeds",
)

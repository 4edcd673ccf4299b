"""The stages of text, as entries of the stage table."""

from __future__ import annotations

from simulator.contract.audio import Vocoder
from simulator.contract.backend import Stage
from simulator.contract.stage import CLAIMS, KEPT, REPEATS, StageSpec, checks, one_word, proved_by
from simulator.contract.text import Tokenizer
from simulator.modalities.audio.stages import MODEL

TOKENIZE = one_word(
    "tokenize",
    "a text becomes token ids",
    100,
    "text",
    also=("image",),
    base=Tokenizer,
    calls=("encode",),
    own=("truncation_side",),
    work="simulator.testing.tokenizers:Tokenizing",
    checks=(
        *CLAIMS,
        *proved_by(
            "tokenizers",
            "texts_come_back",
            "ids_are_within_the_vocabulary",
            "each_id_has_its_piece",
            "an_empty_text_is_nothing",
            "any_text_will_do",
            "values_do_something",
            "bad_vocabularies_are_refused",
        ),
        KEPT[-1],
        *REPEATS,
    ),
)
FEEDS = one_word("feeds", "token ids become the network's inputs", 500, "text", also=("image",))
FOLLOW = StageSpec(
    "follow",
    "inferences follow from the first one",
    850,
    modality="text",
    section=("decoding",),
    fields_are_axes=True,
    step="follow",
)
VOCODE = StageSpec(
    Stage.VOCODE,
    "a spectrogram becomes a waveform",
    860,
    modality="text",
    section=("vocoder",),
    axis="vocoder",
    step="vocode",
    base=Vocoder,
    calls=("wave",),
    own=("mel_scale", "mel_norm", "mel_inverse"),
    words=(MODEL,),
    work="simulator.testing.vocoders:Vocoding",
    checks=checks(
        *proved_by(
            "vocoders",
            "waves_agree_with_float64",
            "a_tone_keeps_its_magnitudes",
            "any_number_of_frames",
            "what_is_no_spectrum_is_refused",
        )
    ),
)

"""The stages of sounds, as entries of the stage table."""

from __future__ import annotations

from simulator.contract.audio import MelFilters, Resampler, SoundReader, Stft
from simulator.contract.backend import Stage
from simulator.contract.stage import CLAIMS, KEPT, REPEATS, checks, one_word, proved_by

_SOUNDS = "simulator.testing.sounds"
MODEL = "model"
"""The word of a profile for: as the model card says."""


READ = one_word(
    Stage.READ,
    "a file becomes a waveform",
    100,
    "audio",
    base=SoundReader,
    calls=("read",),
    work=f"{_SOUNDS}:Reading",
    checks=(
        *CLAIMS,
        *proved_by(
            "sounds",
            "pcm_keeps_its_samples",
            "channels_are_as_claimed",
            "any_length_is_read",
            "bad_sounds_are_refused",
            "what_is_not_finite_is_refused",
        ),
        *KEPT,
        *REPEATS,
    ),
)
RESAMPLE = one_word(
    Stage.RESAMPLE,
    "the sample rate is changed",
    150,
    "audio",
    base=Resampler,
    calls=("resample",),
    work=f"{_SOUNDS}:Resampling",
    checks=checks(
        *proved_by(
            "sounds",
            "equal_rates_change_nothing",
            "a_constant_stays_constant",
            "a_low_sine_stays_that_sine",
            "any_length_is_resampled",
        )
    ),
)
STFT = one_word(
    Stage.STFT,
    "a waveform becomes a spectrogram",
    200,
    "audio",
    base=Stft,
    calls=("spectrum",),
    own=("pre_emphasis", "dither"),
    words=(MODEL,),
    work=f"{_SOUNDS}:Transforming",
    checks=checks(
        *proved_by(
            "sounds",
            "spectra_agree_with_float64",
            "a_sine_has_its_bin",
            "any_length_is_transformed",
            "what_is_no_waveform_is_refused",
        )
    ),
)
MEL = one_word(
    Stage.MEL,
    "frequencies become mel bands",
    300,
    "audio",
    base=MelFilters,
    calls=("matrix",),
    own=("fmin", "fmax"),
    words=(MODEL,),
    work=f"{_SOUNDS}:Filtering",
    checks=(
        *CLAIMS,
        *proved_by(
            "sounds",
            "filters_agree_with_float64",
            "filters_keep_to_their_band",
            "an_empty_band_is_refused",
        ),
        *KEPT,
        *REPEATS,
    ),
)
LOG = one_word("log", "power becomes a logarithm", 400, "audio")
NORMALIZE = one_word(
    "normalize_sound", "values become the network's numbers", 500, "audio", "normalize"
)

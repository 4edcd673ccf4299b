"""The stages of sounds, as entries of the stage table."""

from __future__ import annotations

from typing import Any

from simulator.contract.audio import MelFilters, Resampler, SoundReader, Stft
from simulator.contract.backend import Stage
from simulator.contract.stage import CLAIMS, MANNERS, REPEATS, StageSpec, checks

_SOUNDS = "simulator.testing.sounds"
MODEL = "model"
"""The word of a profile for: as the model card says."""


def _of(*functions: str) -> tuple[str, ...]:
    return tuple(f"{_SOUNDS}:{function}" for function in functions)


def _of_manners(*functions: str) -> tuple[str, ...]:
    return tuple(check for check in MANNERS if check.endswith(functions))


def _stage(name: str, about: str, order: int, word: str = "", **more: Any) -> StageSpec:
    """A stage whose section, axis and step have one word: its name, unless another is given."""
    word = word or name
    return StageSpec(
        name, about, order, modality="audio", section=(word,), axis=word, step=word, **more
    )


READ = _stage(
    Stage.READ,
    "a file becomes a waveform",
    100,
    base=SoundReader,
    calls=("read",),
    work=f"{_SOUNDS}:Reading",
    checks=(
        *CLAIMS,
        *_of(
            "pcm_keeps_its_samples",
            "channels_are_as_claimed",
            "any_length_is_read",
            "bad_sounds_are_refused",
            "what_is_not_finite_is_refused",
        ),
        *_of_manners("outputs_are_kept", "instances_do_not_mix"),
        *REPEATS,
    ),
)
RESAMPLE = _stage(
    Stage.RESAMPLE,
    "the sample rate is changed",
    150,
    base=Resampler,
    calls=("resample",),
    work=f"{_SOUNDS}:Resampling",
    checks=checks(
        *_of(
            "equal_rates_change_nothing",
            "a_constant_stays_constant",
            "a_low_sine_stays_that_sine",
            "any_length_is_resampled",
        )
    ),
)
STFT = _stage(
    Stage.STFT,
    "a waveform becomes a spectrogram",
    200,
    base=Stft,
    calls=("spectrum",),
    own=("pre_emphasis", "dither"),
    words=(MODEL,),
    work=f"{_SOUNDS}:Transforming",
    checks=checks(
        *_of(
            "spectra_agree_with_float64",
            "a_sine_has_its_bin",
            "any_length_is_transformed",
            "what_is_no_waveform_is_refused",
        )
    ),
)
MEL = _stage(
    Stage.MEL,
    "frequencies become mel bands",
    300,
    base=MelFilters,
    calls=("matrix",),
    own=("fmin", "fmax"),
    words=(MODEL,),
    work=f"{_SOUNDS}:Filtering",
    checks=(
        *CLAIMS,
        *_of(
            "filters_agree_with_float64", "filters_keep_to_their_band", "an_empty_band_is_refused"
        ),
        *_of_manners("outputs_are_kept", "instances_do_not_mix"),
        *REPEATS,
    ),
)
LOG = _stage("log", "power becomes a logarithm", 400)
NORMALIZE = _stage("normalize_sound", "values become the network's numbers", 500, "normalize")

"""The sections of a text profile: tokenize and feeds; and prompts, of an image profile."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.profile.schema import ProfileSpec
from simulator.profile.section import Above0, OpenSection, Positive, Section


class Tokenize(OpenSection):
    """How a text becomes token ids."""

    special_tokens: bool | str | None = Field(
        None, description="add the special tokens that the vocabulary puts around a text"
    )
    parse_special: bool | None = Field(
        None, description="a special token that is written in a text is one id, and no plain text"
    )
    prefix_space: bool | str | None = Field(
        None, description="put a blank before a text; file: as the vocabulary file says"
    )
    normalizer: str | None = Field(
        None, description="what is done to characters first; file: as the vocabulary file says"
    )
    pre_tokenizer: str | None = Field(
        None, description="how a text is split into words; file: as the vocabulary file says"
    )
    truncation_side: Literal["left", "right", "refuse"] = Field(
        description="where the context of an over-long text is cut; refuse: the sample is skipped"
    )


class Feeds(Section):
    """How token ids become the network's inputs."""

    batch: Literal["single", "choices"] = Field(
        description="one inference a request; or one batch of all requests of a sample"
    )
    padding_side: Literal["left", "right"] = Field(
        description="where shorter rows are filled up; no effect where nothing is"
    )
    pad_to: Positive | None = Field(
        None,
        description="the length of every row, and of the network: longer texts are over-long; "
        "without it, rows are as long as the longest of the batch",
    )
    mask: Literal["honoured", "ignored"] = Field(
        description="whether the network learns which positions are filled up; no effect where "
        "none is"
    )
    position_ids: Literal["from_mask", "arange"] = Field(
        description="counted from a row's first token, or from its first position; no effect "
        "where the network counts itself"
    )
    max_length: Literal["model"] | Positive = Field(
        description="ids that the network takes at most; model: as the model card says"
    )

    def neutral(self, padded: bool, positions: bool) -> Feeds:
        """Return the section with fixed values where a field has no effect on a network.

        Args:
            padded: whether a row can be filled up.
            positions: whether the network takes position ids.
        """
        update = {} if padded else {"padding_side": "right", "mask": "honoured"}
        if not positions or not padded:
            update["position_ids"] = "from_mask"
        return self.model_copy(update=update)


class Prompts(Section):
    """How the names of classes become texts, where the model card has a text tower.

    Attributes:
        words: what ``template`` may be besides a template.
    """

    words: ClassVar[tuple[str, ...]] = ("model",)

    template: str | Annotated[list[str], Field(min_length=1)] = Field(
        description="with {} for the name; of several the vectors are averaged; model: as the "
        "model card says"
    )

    @model_validator(mode="after")
    def _has_a_place(self) -> Prompts:
        for one in [self.template] if isinstance(self.template, str) else self.template:
            if "{}" not in one and one not in self.words:
                raise ValueError(f"template: {one!r} has no {{}}, where the name of a class goes")
        return self

    @property
    def templates(self) -> tuple[str, ...]:
        """The templates."""
        return (self.template,) if isinstance(self.template, str) else tuple(self.template)


class Sampling(Section):
    """Tokens that are drawn from softmax(logits / temperature)."""

    temperature: Above0
    seed: Annotated[int, Field(ge=0)] = Field(
        description="of the draws, which are the same for equal prompts"
    )


class Decoding(Section):
    """How a text is written on, token by token; without effect where nothing is written."""

    cache: Literal["none", "kv"] = Field(
        "none",
        description="read the whole text again for each token; or keep the keys and values of its "
        "earlier tokens",
    )
    prefill_chunk: Positive | None = Field(
        None, description="the prompt is read in pieces of so many tokens; wants cache: kv"
    )
    neighbours: Annotated[int, Field(ge=0, le=63)] = Field(
        0,
        description="other samples' texts that are written in the same batch: those that come next",
    )

    lookup: Positive | None = Field(
        None,
        description="so many tokens are guessed, those behind the last place where the text's last "
        "two stood, and read at once; only right ones are kept; wants cache: kv",
    )
    shift: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="where a text is as long as the network takes it, half of it behind the first "
        "so many tokens is forgotten and the rest moves up; wants cache: kv and a runtime that "
        "moves positions; else the text ends there",
    )
    sampling: Sampling | None = Field(None, description="draw tokens; else take the likeliest")

    def without_cache(self) -> Decoding:
        """Return what is left without a cache."""
        return self.model_copy(update=dict.fromkeys(("prefill_chunk", "lookup", "shift")))

    @model_validator(mode="after")
    def _needs_the_cache(self) -> Decoding:
        if self.cache == "none" and self != self.without_cache():
            raise ValueError("prefill_chunk, lookup, shift: they need cache: kv")
        if self.shift is not None and self.neighbours:
            raise ValueError("shift: for one text; leave out neighbours")
        if self.lookup and (self.sampling or self.neighbours):
            raise ValueError("lookup: for the likeliest tokens of one text; leave out sampling "
                             "and neighbours")  # fmt: skip
        return self


class Vocoder(OpenSection):
    """How a spectrogram becomes a waveform; ``model``: as the model card says."""

    method: Literal["istft", "griffin_lim"] = Field(
        description="invert a complex spectrum; or find phases that fit magnitudes"
    )
    center: bool | Literal["model"] | None = Field(
        None, description="frames are centred: half a transform is cut off at both ends"
    )
    pad_mode: Literal["model", "reflect", "constant", "edge", "symmetric"] | None = Field(
        None, description="griffin_lim: what is beyond both ends where it transforms again"
    )
    window: Literal["model", "hann", "hamming", "none"] | None = None
    window_symmetry: Literal["model", "periodic", "symmetric"] | None = None
    scaling: Literal["model", "none", "window_sum", "sqrt_n"] | None = Field(
        None, description="what the magnitudes were divided by, and are multiplied by"
    )
    overlap: Literal["window_square", "constant", "none"] | None = Field(
        None,
        description="what overlapping frames are divided by: the sum of their squared windows; "
        "that of endless frames, so that both ends fade; nothing",
    )
    mel_scale: Literal["model", "slaney", "htk"] | None = Field(
        None, description="of mel bands; nothing where the network gives none"
    )
    mel_norm: Literal["model", "slaney", "none"] | None = None
    mel_inverse: Literal["pinv", "nnls"] | None = Field(
        None,
        description="from mel bands to frequencies: least squares, cut at 0; or those not below 0",
    )


class TextSpec(ProfileSpec):
    """A stack that takes texts.

    ``tokenize`` may be absent: samples then bring their ids. ``vocoder`` is for networks that
    speak in spectrograms.
    """

    tokenize: Tokenize | None = None
    feeds: Feeds
    decoding: Decoding = Decoding()
    vocoder: Vocoder | None = None

    @classmethod
    def problems(cls, profile: Profile, choices: Choices) -> list[str]:
        """Refuse batches of samples, whose texts have different lengths."""
        if profile.spec.runtime.samples == 1:
            return []
        return [
            f"{profile.where(('runtime', 'batch'))}: runtime.batch: texts have different lengths; "
            "write batch: 1, and decoding.neighbours for others that are written beside a text"
        ]

    def settled(self) -> TextSpec:
        """Return the profile without what needs a cache, or one text, where it has none."""
        how = self.decoding
        how = how if how.cache == "kv" else how.without_cache()
        if how.sampling or how.neighbours:
            how = how.model_copy(update={"lookup": None})
        if how.neighbours:
            how = how.model_copy(update={"shift": None})
        return self.model_copy(update={"decoding": how})


def text_spec(profile: Profile) -> TextSpec:
    """Return the content of a profile, typed as that of a profile for texts."""
    assert isinstance(profile.spec, TextSpec), f"{profile.name} takes no texts"
    return profile.spec

"""The attacked model: from pixels in [0, 1] to its scores and their gradients."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from simulator import registry
from simulator.contract import LOGITS, Backend, Differentiable, Gradient, Pull, Runtime, Stage
from simulator.contract.model_format import MODEL_FORMATS, ONNX
from simulator.contract.recipe import Recipe, Runtimes
from simulator.digests import sha256
from simulator.errors import ModelError, SampleError, UserError
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.profile.implementations import Choice, implementation

F32 = NDArray[np.float32]
TINY = 1e-30
"""Probabilities below it count as it: their logarithm is finite."""
NEAR = 1e-3
"""How far the differentiated model's scores may be from those of the card's ONNX file."""
NEAR_ROUNDED = 0.05
"""Likewise for a model that rounds its activations, as a share of the range of its scores: a sum
that differs in its last bit rounds to the next step now and then (measured: up to 0.03)."""
_RUN = {
    "device": "cpu", "provider": "cpu", "io_binding": False, "threads": 1,
    "graph_optimization_level": "all", "storage": "fp32", "compute": "fp32",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Feed:
    """How pixels become a classifier's input, and what its scores are.

    Attributes:
        layout: of the input, ``NCHW`` or ``NHWC``.
        order: of the input's channels, ``rgb`` or ``bgr``.
        mean: on 0-1, in the order of the input's channels.
        std: likewise.
        kind: what the scores are: ``logits`` or ``probabilities``.
        background: how many scores stand before that of class 0.
    """

    layout: str
    order: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    kind: str
    background: int

    @classmethod
    def of(cls, text: str, card: Card) -> Feed:
        """Return that of a card.

        Raises:
            UserError: it is no classifier.
        """
        if card.task.name != "classification":
            raise UserError(
                f"--under {text}: attacks are for classification; {card.path} is for "
                f"{card.task.name}"
            )
        given, output = card.spec.input, card.task.output
        mean, std = (
            tuple(value / given.top for value in values) for values in (given.mean, given.std)
        )
        return cls(given.layout, given.order, mean, std, output.kind, output.background)

    def tensor(self, rgb: F32) -> F32:
        """Return the network's input.

        Args:
            rgb: (H, W, 3) in [0, 1].
        """
        pixels = rgb if self.order == "rgb" else rgb[..., ::-1]
        values = (pixels - _f32(self.mean)) / _f32(self.std)
        found = values.transpose(2, 0, 1) if self.layout == "NCHW" else values
        return np.ascontiguousarray(found[None], np.float32)

    def pixels(self, gradient: F32) -> F32:
        """Return the derivative by pixels in [0, 1], from that by the network's input."""
        rows = gradient[0].transpose(1, 2, 0) if self.layout == "NCHW" else gradient[0]
        found = rows / _f32(self.std)
        return np.ascontiguousarray(found if self.order == "rgb" else found[..., ::-1])

    def logits(self, scores: F32) -> F32:
        """Return (C,) logits of the classes: logarithms of what are probabilities."""
        own = scores[self.background :]
        return own if self.kind == LOGITS else np.log(np.maximum(own, TINY))

    def back(self, scores: F32, cotangent: F32) -> F32:
        """Return a derivative by the scores, from one by :meth:`logits` of them."""
        own, found = scores[self.background :], np.zeros_like(scores)
        slope = 1 if self.kind == LOGITS else (own > TINY) / np.maximum(own, TINY)
        found[self.background :] = cotangent * slope
        return found


@dataclass(frozen=True, slots=True)
class Target:
    """A classifier that is attacked: plain data, so that it can travel to another process.

    Attributes:
        path: the file whose gradient is followed.
        format: of that file, one that some backend differentiates.
        digest: SHA-256 of that file, with its external data.
        onnx: the card's ONNX file, whose scores the other's must have; None without one.
        feed: how pixels become its input.
    """

    path: Path
    format: str
    digest: str
    onnx: Path | None
    feed: Feed

    def identity(self) -> Any:
        """Return what its gradients depend on, as JSON."""
        return [self.format, self.digest, *astuple(self.feed), self.choice().identity()]

    def choice(self) -> Choice:
        """Return what computes its gradients."""
        return implementation(Stage.GRADIENT, _backend(self.format), {"format": self.format})

    def words(self) -> str:
        """Return what computes its gradients, with versions."""
        return f"{self.path.name} ({self.format}) by {versions_of(self.choice())}"

    def open(self, runtimes: Runtimes | None) -> Opened:
        """Open it; all attacks on a model share it."""
        return opened(self)


def target_of(text: str, card: Card, source: ModelFile) -> Target:
    """Return the model of a card as a target; it is opened once to see that this works.

    Raises:
        UserError: the model is none that can be attacked, or its gradient cannot be computed.
    """
    feed = Feed.of(text, card)
    onnx = source.path if source.format == "onnx" else None
    known = {format: path for format in _formats() if (path := card.file(format)) is not None}
    if not known:
        written = " or ".join(MODEL_FORMATS[format].written for format in reversed(_formats()))
        raise UserError(
            f"--under {text}: an attack needs the model's gradient, and {card.path} names no file "
            f"that has one; name {written} in the card"
        )
    format, path = next(iter(known.items()))
    digest = source.digest if format == ONNX else str(sha256(path))
    found = Target(path, format, digest, onnx, feed)
    opened(found)
    return found


def target_on(text: str, infer: Recipe, feed: Feed) -> Target:
    """Return the network of a stack as a target; gradients pass straight through what it rounds.

    Raises:
        UserError: the gradient of its file cannot be computed.
    """
    artifact = getattr(infer, "artifact", None)
    if artifact is None or artifact.format not in _formats():
        written = " or ".join(MODEL_FORMATS[format].written for format in reversed(_formats()))
        what = artifact and artifact.format
        raise UserError(
            f"--under {text}: gradients are known of {written}, and the network of this stack is "
            f"{what or 'none that one file holds'}; leave out on=, or take square, which asks for "
            "answers"
        )
    onnx = artifact.path if artifact.format == ONNX else None
    found = Target(artifact.path, artifact.format, str(sha256(artifact.path)), onnx, feed)
    opened(found)
    return found


class Opened:
    """An opened target, held against ONNX Runtime."""

    def __init__(self, target: Target) -> None:
        self.target = target
        choice = target.choice()
        registry.require(choice.backend)
        self._model: Differentiable = choice.make(target.path)
        self._runtime: Runtime | None = None
        if target.onnx is not None:
            run = implementation(Stage.RUNTIME, registry.reference(Stage.RUNTIME), _RUN)
            self._runtime = run.make(target.onnx)

    def gradient(self, rgb: F32, truth: int) -> Gradient:
        """Return loss and scores, and the derivative by pixels in [0, 1].

        Args:
            rgb: (H, W, 3) in [0, 1].
            truth: a class of the card, without the background.
        """
        feed = self.target.feed
        found = self._model.gradient(feed.tensor(rgb), truth + feed.background, feed.kind)
        if not np.isfinite(found.gradient).all():
            raise SampleError("the gradient of the attacked model is not finite")
        return Gradient(found.scores, found.loss, feed.pixels(found.gradient))

    def at(self, rgb: F32) -> tuple[F32, Pull]:
        """Return the logits of the classes, and the way back to pixels in [0, 1]."""
        feed = self.target.feed
        scores, pull = self._model.at(feed.tensor(rgb))

        def back(cotangent: F32) -> F32:
            found = feed.pixels(pull(feed.back(scores, cotangent)))
            if not np.isfinite(found).all():
                raise SampleError("the gradient of the attacked model is not finite")
            return found

        return feed.logits(scores), back

    def logits(self, rgb: F32) -> F32:
        """Return the logits of the classes, without the background."""
        return self.target.feed.logits(self._model.scores(self.target.feed.tensor(rgb)))

    def hold(self, rgb: F32) -> None:
        """Compare the scores for a sample with those of the card's ONNX file.

        Raises:
            ModelError: they are further apart than :data:`NEAR`, or :data:`NEAR_ROUNDED`.
        """
        if self._runtime is None:
            return
        values = self.target.feed.tensor(rgb)
        (port,), (first, *_) = self._runtime.inputs, self._runtime.outputs
        wanted = self._runtime.run({port.name: values})[first.name].reshape(-1)
        got = self._model.scores(values)
        if got.shape != wanted.shape:
            raise ModelError(f"{self.target.path}: {got.size} scores, {wanted.size} expected")
        allowed = NEAR_ROUNDED * float(np.ptp(wanted)) if self._model.rounds else NEAR
        far = float(np.abs(got - wanted).max())
        if not far <= allowed:
            raise ModelError(
                f"{self.target.path}: what would be attacked is another model than "
                f"{self.target.onnx}: their scores differ by {far:.2g}, {allowed:.2g} is allowed"
            )


@lru_cache(maxsize=16)
def opened(target: Target) -> Opened:
    """Open a target; all attacks on a model share it."""
    return Opened(target)


def release() -> None:
    """Forget the opened targets; each is freed as soon as no attack uses it."""
    opened.cache_clear()


def _formats() -> list[str]:
    """Return the formats that backends differentiate; ONNX, which is converted, last."""
    offers = (offer for backend in registry.backends() for offer in backend.of(Stage.GRADIENT))
    found = {one for offer in offers for one in cast(tuple[str, ...], offer.options["format"])}
    return sorted(found, key=lambda one: one == ONNX)


def _backend(format: str) -> Backend:
    """Return the first backend that computes gradients of such files."""
    offers = (
        (backend, offer) for backend in registry.backends() for offer in backend.of(Stage.GRADIENT)
    )
    return next(backend for backend, offer in offers if format in offer.options["format"])


def versions_of(choice: Choice) -> str:
    """Return the libraries of a choice, with versions."""
    found = registry.versions(choice.backend).items()
    return ", ".join(f"{name} {version}" for name, version in found)


def _f32(values: tuple[float, ...]) -> F32:
    return np.array(values, np.float32)

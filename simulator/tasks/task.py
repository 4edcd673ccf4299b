"""What a task is: what a model's outputs mean, and how well they fit what people have annotated.

The engine knows no task. It asks one, made from the model card, for the methods below, and keeps
what they return: a flat record for each sample and stack, from which every figure is computed. How
answers are shown to people is another class, :class:`simulator.tasks.view.View`, and so is how far
a hardware fault changes one, :class:`simulator.tasks.impact.Impact`.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import pyarrow as pa
from pydantic import BaseModel

from simulator.contract.audio import Sound
from simulator.contract.stage import named
from simulator.contract.tune import TrainingObjective
from simulator.contract.warp import Size, WarpOf
from simulator.data.address import Root
from simulator.data.card import find_card, read_card
from simulator.data.folder import IMAGES, Dataset, Files
from simulator.data.labels import Labels
from simulator.data.source import samples_of
from simulator.entry_points import Table
from simulator.errors import DataError, UserError
from simulator.profile.postprocess import Postprocess
from simulator.profile.section import Section
from simulator.statistics.bootstrap import RESAMPLES, Resamples
from simulator.tasks import figures, impact
from simulator.tasks import score as scores
from simulator.tasks import view as views
from simulator.tasks.figures import Comparison, Figures
from simulator.tasks.score import Record, Score, Values

if TYPE_CHECKING:
    from simulator.tasks.specimen import Specimen

Shapes = Mapping[str, Sequence[int | None]]
CHANGES = (
    pa.field("changed", pa.int64()),
    pa.field("units", pa.int64()),
)
"""In how many units an answer differs from the first stack's, and how many units there are."""


class Settings(Protocol):
    """How outputs become answers: what the card says, and what the profile says instead."""

    def identity(self) -> Any:
        """Return what tells these settings from others; JSON."""


@dataclass(frozen=True, slots=True)
class CardSettings:
    """The settings of a task for which a profile's ``postprocess`` has no field.

    Attributes:
        output: the card's ``output`` section.
    """

    output: BaseModel

    def identity(self) -> Any:
        """Return the content of the section."""
        return self.output.model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class Network:
    """What a task has to know of the model around its outputs.

    Attributes:
        labels: the classes; None where the card has no label file.
        input: the card's ``input`` section, as its modality defines it.
        folder: of the card; files that its ``output`` section names are relative to it.
    """

    labels: Labels | None = None
    input: Any = None
    folder: Path = Path()

    @property
    def classes(self) -> int:
        """How many classes there are, for tasks whose cards must name them."""
        assert self.labels is not None
        return len(self.labels)

    def label(self, index: int) -> str:
        """Return a class's name, or its index where the card names no label file."""
        return self.labels.name(index) if self.labels else str(index)


class FollowUpInference(Protocol):
    """Inferences of one sample, each made of what came before; plain data."""

    def identity(self) -> Any:
        """Return what its inferences depend on besides the sample and the network; JSON."""

    def steps(self, feeds: Any, placement: Any) -> Generator[Any, Any, Any]:
        """Yield what each inference takes, be sent its outputs, and return those to keep.

        Args:
            feeds: what the front end made of the sample.
            placement: see :meth:`Task.decode`.

        Returns:
            A tuple of mappings, as :meth:`Task.decode` takes it.
        """


class Task(ABC):
    """One task, for one model; plain data, so that it can be sent to another process.

    The class is found by entry point, group ``simulator.tasks``. The smallest one has a ``name``,
    ``metrics``, ``columns``, :meth:`decode`, :meth:`record` and :meth:`examples`: each metric is
    then the mean of the column of its name, and an answer has changed where it is another one.

    Attributes:
        name: as model cards write it.
        unit: what flips are counted in, in the singular.
        metrics: those that a comparison gives deltas of; the first one is the headline.
        columns: what its records hold, :data:`CHANGES` among them.
        kinds: the columns that count kinds of flips; ``flips`` of a comparison has their sums.
        needs_labels: whether a model card must name a label file.
        in_pixels: whether answers and truth are places in the sample, as boxes and masks are.
        pictures: what a report shows of answers that are sounds, in place of what the modality
            shows of samples; see :attr:`simulator.modalities.modality.Modality.pictures`.
        several: whether :meth:`decode` takes the outputs of several inferences.
        in_parts: whether a sample has several units, as an image has objects.
        resamples: how often its metrics are resampled.
        reads: the fields of the card's ``output`` section that name outputs of the model.
        guess: the headline metric that guessing has; None where it has no level.
        missing: columns that are None where no answer came in time.
        shown: columns that :meth:`flip` keeps of either stack; None: all but the counts.
        shown_once: those that it keeps once; None: the counts of changes.
        tried_with: ``module:function`` that makes :meth:`specimens`, or one, of the class.
        Output: the schema of a card's ``output`` section.
        Flips: the type of ``flips`` of a comparison, where :meth:`more` adds figures to it.
        View: how answers are shown to people.
        Impact: how far a hardware fault changes an answer.

    Args:
        output: the card's section, checked.
        network: the model around it.
    """

    name: ClassVar[str]
    unit: ClassVar[str] = "sample"
    metrics: ClassVar[tuple[str, ...]]
    columns: ClassVar[tuple[pa.Field, ...]]
    kinds: ClassVar[tuple[str, ...]] = ()
    needs_labels: ClassVar[bool] = False
    in_pixels: ClassVar[bool] = False
    pictures: ClassVar[tuple[str, ...]] = ()
    several: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    resamples: ClassVar[int] = RESAMPLES
    reads: ClassVar[tuple[str, ...]] = ()
    guess: ClassVar[float | None] = None
    missing: ClassVar[tuple[str, ...]] = ()
    shown: ClassVar[tuple[str, ...] | None] = None
    shown_once: ClassVar[tuple[str, ...] | None] = None
    tried_with: ClassVar[str] = ""
    Output: ClassVar[type[BaseModel]] = Section
    Flips: ClassVar[type[figures.Flips]] = figures.Flips
    View: ClassVar[type[views.View]] = views.View
    Impact: ClassVar[type[impact.Impact]] = impact.Impact

    def __init__(self, output: Any, network: Network) -> None:
        self.output, self.network = output, network

    @classmethod
    def view(cls) -> views.View:
        """Return what shows its answers to people."""
        return cls.View(cls)

    @classmethod
    def specimens(cls) -> Mapping[str, Specimen]:
        """Return what the conformance suite tries this task with, by name; see there."""
        if not cls.tried_with:
            return {}
        made = named(cls.tried_with)(cls)
        return made if isinstance(made, Mapping) else {cls.tried_with.partition(":")[2]: made}

    @property
    def headline(self) -> str:
        """The first metric."""
        return self.metrics[0]

    def vocabulary(self) -> dict[str, Sequence[str]]:
        """Return the names that a comparison's dictionaries have as keys, by kind of name.

        ``metric``: of either stack; ``delta``: those that are compared; ``flips``: kinds of flips;
        ``class``: the classes. See :class:`simulator.typed.Keys`. Gate rules are checked with them
        before a run.
        """
        labels = self.network.labels
        return {
            "metric": self.metrics,
            "delta": self.metrics,
            "flips": self.kinds,
            "class": labels.names if labels else (),
        }

    def outputs(self) -> tuple[str, ...]:
        """Return the outputs that the card names; none where the model's first one is meant."""
        given = (getattr(self.output, field) for field in self.reads)
        return tuple(name for name in given if name)

    def check(self, shapes: Shapes) -> None:  # noqa: B027 - most cards promise nothing of shapes
        """Compare a model's outputs with what the card says of them.

        Args:
            shapes: of each output that :meth:`outputs` names, or of the first one.

        Raises:
            ModelError: naming the output, what was expected and what it is.
        """

    def nc_below(self, shapes: Shapes) -> float | None:
        """Return the headline metric below which a network is NC: it has learned nothing.

        Args:
            shapes: of the model's outputs, the first one first; empty where they are not known.

        Returns:
            A fraction; None where there is no such rule.
        """
        return None

    def chance(self, shapes: Shapes, records: Sequence[Record]) -> float | None:
        """Return the headline metric that guessing has on some samples; by default :attr:`guess`.

        Args:
            shapes: of the model's outputs, the first one first; empty where they are not known.
            records: of the samples, by any stack.

        Returns:
            A fraction; None where a guess has no level.
        """
        return self.guess

    def settings(self, asked: Postprocess) -> Settings:
        """Return the card's settings with those of a profile in their place.

        Raises:
            ModelError: the two do not go together.
        """
        return CardSettings(self.output)

    def sequel(self, settings: Settings) -> FollowUpInference | None:
        """Return how further inferences follow from the first one; None: there are none."""
        return None

    def lesson(self, settings: Settings) -> TrainingObjective | None:
        """Return what a network of this task learns when it is fine-tuned; None: it cannot be.

        Classifiers need none: they learn by the cross-entropy.

        Args:
            settings: what :meth:`settings` returned for the training stack.

        Raises:
            ModelError: networks of the task can be, but not with this card's output.
        """
        return None

    def timed(self, prediction: Any, ns: Sequence[int]) -> Any:
        """Return a prediction with the nanoseconds of each inference of a :meth:`sequel`."""
        return prediction

    @abstractmethod
    def decode(self, outputs: Any, settings: Any, placement: Any) -> Any:
        """Turn the outputs for one sample into a prediction.

        Args:
            outputs: arrays by the names of :meth:`outputs`, with a batch of 1. Where
                :attr:`several`, a tuple of such mappings, one for each inference that the front
                end made of the sample (the choices of a question), in its order.
            settings: what :meth:`settings` returned.
            placement: how the sample lies in the network's input, as the modality's placing says
                (of an image a :class:`simulator.modalities.image.geometry.Placement`).

        Raises:
            ModelError: an output is not what the card promises.
            NotFinite: the model gave NaN or an infinity.
        """

    def load(self, path: Root, files: Files = IMAGES) -> Dataset:
        """Open the samples of a data card, or those that a path or a URL has.

        Args:
            path: a data card, a folder with a ``data.yaml``, or what one of
                :data:`simulator.data.source.SOURCES` takes.
            files: the files that are samples.

        Raises:
            DataError: they cannot be used, or are annotated for another task.
        """
        found = find_card(path)
        if found is None:
            return self.without_card(path, files)
        card = read_card(found)
        if card.task != self.name:
            raise DataError(f"{found}: task: {card.task}, and the model is for {self.name}")
        return card.load(self.network.labels, files, self.truth_of)

    def without_card(self, root: Root, files: Files) -> Dataset:
        """Open samples that have no data card; by default nobody has annotated them.

        Raises:
            DataError: they cannot be used.
        """
        return samples_of(root, files)

    def truth_of(self, text: str, where: str) -> Any:
        """Return the truth that a text beside a sample says, of tasks whose truth is one text.

        Args:
            text: as it is written.
            where: begins messages.

        Raises:
            DataError: it says none.
        """
        raise DataError(f"{where}: a text is no truth for {self.name}; choose another format")

    def recorded(self, prediction: int, score: float, margin: float) -> Any:
        """Return the prediction of a recorded class index; score and margin may be NaN.

        Raises:
            UserError: a prediction of this task is more than a class index.
        """
        raise UserError(
            f"kind: predictions: these are class indices, and the model does {self.name}; record "
            "its outputs"
        )

    def example(self) -> Dataset:
        """Return the built-in samples.

        Raises:
            UserError: there are none for this task.
        """
        raise UserError(f"there are no built-in samples for {self.name}; give --data")

    def stamp(self, truth: Any) -> Any:
        """Return what tells one truth from another; JSON, and None where there is no truth.

        By default a string, a number or a boolean is its own stamp, and of other JSON it is a
        digest.
        """
        if truth is None or isinstance(truth, (str, int, float)):
            return truth
        text = json.dumps(truth, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def moved(self, truth: Any, warp: WarpOf, size: Callable[[], Size]) -> Any:
        """Return a truth that follows the pixels of its image; only where :attr:`in_pixels`.

        Args:
            truth: what people have annotated; not None.
            warp: where the pixels of an image go.
            size: returns the image's rows and columns.
        """
        raise NotImplementedError(f"{self.name} is not about places in an image")

    def opened(self, truth: Any, source: Any = None) -> Any:
        """Return a truth ready for :meth:`record` and :meth:`change`; called once a sample.

        Args:
            truth: what people have annotated.
            source: the sample as its modality read it; None where only the truth is known.

        Raises:
            SampleError: this sample's truth cannot be used.
        """
        return truth

    @abstractmethod
    def record(self, prediction: Any, truth: Any) -> Values:
        """Return a prediction's :attr:`columns`, those of :meth:`change` excepted.

        Raises:
            SampleError: this sample's truth cannot be used.
        """

    def change(self, before: Any, after: Any, truth: Any) -> Values:
        """Return :data:`CHANGES` and :attr:`kinds`: how an answer differs from the first stack's.

        By default an answer is one unit, and has changed where ``before != after``.
        """
        return {"changed": int(before != after), "units": 1}

    def same(self, before: Record, after: Record) -> bool:
        """Whether two runs of one stack gave the same answer to a sample.

        By default all columns must be equal but those of fractions: how sure a stack was is not
        part of its answer.
        """
        return scores.agree(before, after, self.firm)

    @property
    def firm(self) -> tuple[str, ...]:
        """The columns that are not fractions: what was answered, not how surely."""
        return tuple(field.name for field in self.columns if not _is_fraction(field.type))

    @property
    def answer(self) -> tuple[str, ...]:
        """The columns in which a flip shows: the firm ones that say nothing of another stack."""
        return tuple(name for name in self.firm if name not in self._counts)

    @property
    def _counts(self) -> tuple[str, ...]:
        return ("changed", "units", *self.kinds)

    def flipped(self, before: Record, after: Record) -> bool:
        """Whether two records of one sample are different answers, each whatever stack it is of."""
        return not scores.agree(before, after, self.answer)

    def late(self, record: Record) -> Values:
        """Return a record as if its answer had come too late, so that it counts as wrong.

        By default every metric's column is 0, and those of :attr:`missing` are None.

        Source:
            Yang et al., Quality at the Tail of Machine Learning Inference, arXiv 2212.13925.
        """
        wrong = {name: 0.0 for name in self.metrics if record[name] is not None}
        return {**record, **wrong, **dict.fromkeys(self.missing)}

    def score(self, records: Sequence[Record], truths: Sequence[Any]) -> Score:
        """Measure one stack; by default each metric is the mean of the column of its name.

        Args:
            records: one a sample.
            truths: what people have annotated, of the same samples in the same order.
        """
        return scores.mean_score(self.metrics, records, truths)

    def compare(self, train: Score, deploy: Score, draws: Resamples) -> Comparison:
        """Compare two stacks on the samples that went through both.

        Args:
            train: the training stack.
            deploy: the deployment stack, on the same samples.
            draws: of the bootstrap.

        Returns:
            Parts of ``summary.json``: ``labelled``, ``train``, ``deploy``, ``delta``, ``flips``.
            Metrics, rates and deltas are fractions, None where they cannot be computed; a delta is
            deploy minus train; intervals are [lower, upper].

        Raises:
            DataError: there is no sample.
        """
        found = scores.compare(train, deploy, self.metrics, self.kinds, draws)
        more = self.more(train.records, deploy.records)
        return {**found, "flips": {**found["flips"], **more}}

    def more(self, train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
        """Return further figures of the changes between two stacks, for ``flips``."""
        return {}

    def means(self) -> Mapping[str, str]:
        """Return the columns whose means over samples are metrics, by the metric's name.

        Empty where :attr:`in_parts`: then no figure is a mean over samples, and no gate can be
        decided before the last one.
        """
        return {} if self.in_parts else {name: name for name in self.metrics}

    def severity(self, train: Record, deploy: Record) -> float:
        """Return how bad a change is; the worst ones are shown. By default the share of units."""
        return float(deploy["changed"] / max(deploy["units"], 1))

    def flip(self, train: Record, deploy: Record) -> Values:
        """Return what ``summary.json`` keeps of a changed answer: ``train`` and ``deploy`` in it.

        By default :attr:`shown` of either stack, and :attr:`shown_once`.
        """
        once = self._counts if self.shown_once is None else self.shown_once
        own = self.shown
        if own is None:
            own = tuple(field.name for field in self.columns if field.name not in self._counts)
        sides = {"train": train, "deploy": deploy}
        said = {side: {name: record[name] for name in own} for side, record in sides.items()}
        return {**said, **{name: deploy[name] for name in once}}

    def spoken(self, prediction: Any) -> Sound:
        """Return the sound that an answer is; only where answers are sounds."""
        raise NotImplementedError(f"the answers of {self.name} are no sounds")

    @abstractmethod
    def examples(self) -> list[tuple[Any, Any]]:
        """Return a few truths, each with the prediction that is perfect for it.

        One of them has nothing to find, where the task has such samples.
        """

    @final
    def records(self, predictions: Sequence[Any], truth: Any, source: Any = None) -> list[Values]:
        """Return a record for every stack's answer to one sample, compared with the first stack's.

        Args:
            predictions: one a stack.
            truth: what people have annotated.
            source: see :meth:`opened`.

        Raises:
            SampleError: this sample's truth cannot be used.
        """
        first, known = predictions[0], self.opened(truth, source)
        return [self.record(one, known) | self.change(first, one, known) for one in predictions]


def _is_fraction(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_list(kind) else kind
    return bool(pa.types.is_floating(inner))


TASKS: Table[type[Task]] = Table(
    "simulator.tasks", "task", lambda found: isinstance(found, type) and issubclass(found, Task)
)

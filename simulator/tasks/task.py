"""What a task is: what a model's outputs mean, and how well they fit what people have annotated.

The engine knows no task. It asks one, made from the model card, for the methods of :class:`Task`,
and keeps what they return: a flat record for each sample and stack, from which every figure is
computed. Those on data stand in :class:`simulator.tasks.truths.Truths`, those on records in
:class:`simulator.tasks.answers.Answers`. How answers are shown to people is another class,
:class:`simulator.tasks.view.View`, and so is how far a hardware fault changes one,
:class:`simulator.tasks.impact.Impact`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

import pyarrow as pa
from pydantic import BaseModel

from simulator.contract.model import Port
from simulator.contract.stage import named
from simulator.contract.tune import TrainingObjective
from simulator.entry_points import Table
from simulator.profile.implementations import Choices
from simulator.profile.postprocess import Postprocess
from simulator.profile.profile import Profile
from simulator.profile.section import Section
from simulator.statistics.bootstrap import RESAMPLES, Resamples
from simulator.tasks import figures, impact
from simulator.tasks import score as scores
from simulator.tasks import view as views
from simulator.tasks.answers import Answers
from simulator.tasks.figures import Comparison, Figures
from simulator.tasks.score import Record, Score, Values
from simulator.tasks.settings import (
    BackEnd,
    Beside,
    CardSettings,
    FollowUpInference,
    Handover,
    Network,
    Settings,
)
from simulator.tasks.truths import Truths

if TYPE_CHECKING:
    from simulator.tasks.specimen import Specimen

Shapes = Mapping[str, Sequence[int | None]]
CHANGES = (
    pa.field("changed", pa.int64()),
    pa.field("units", pa.int64()),
)
"""In how many units an answer differs from the first stack's, and how many units there are."""


class Task(Truths, Answers):
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
        goes_on: whether a network with state gets it back, in inferences that follow.
        in_parts: whether a sample has several units, as an image has objects.
        resamples: how often its metrics are resampled.
        reads: the fields of the card's ``output`` section that name outputs of the model.
        guess: the headline metric that guessing has; None where it has no level.
        missing: columns that are None where no answer came in time.
        arrivals: the column that says, for each thing that an answer should have, after how many
            parts of it that was there, 0 for never; the last metric is their share. Empty: an
            answer comes as a whole.
        shown: columns that :meth:`flip` keeps of either stack; None: all but the counts.
        shown_once: those that it keeps once; None: the counts of changes.
        tried_with: ``module:function`` that makes :meth:`specimens`, or one, of the class.
        tracked_with: ``module:function`` that follows answers through clips, as
            :func:`simulator.tasks.detection.tracks.tracking` does; empty: they cannot be.
        Output: the schema of a card's ``output`` section.
        Flips: the type of ``flips`` of a comparison, where :meth:`more` adds figures to it.
        View: how answers are shown to people.
        Impact: how far a hardware fault changes an answer.

    Args:
        output: the card's section, checked.
        network: the model around it.
    """

    unit: ClassVar[str] = "sample"
    needs_labels: ClassVar[bool] = False
    in_pixels: ClassVar[bool] = False
    pictures: ClassVar[tuple[str, ...]] = ()
    several: ClassVar[bool] = False
    goes_on: ClassVar[bool] = False
    in_parts: ClassVar[bool] = False
    resamples: ClassVar[int] = RESAMPLES
    reads: ClassVar[tuple[str, ...]] = ()
    guess: ClassVar[float | None] = None
    arrivals: ClassVar[str] = ""
    tried_with: ClassVar[str] = ""
    tracked_with: ClassVar[str] = ""
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

    @classmethod
    def located(cls, output: Any, find: Callable[[str, str], Path]) -> Any:
        """Return a card's ``output`` with the full paths of the files that it names.

        Args:
            output: the section, checked.
            find: see :meth:`simulator.modalities.modality.Modality.located`.
        """
        return output

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

    @property
    def fed(self) -> int | None:
        """How many tokens a sample feeds; None where samples differ, or have none."""
        return None

    def outputs(self) -> tuple[str, ...]:
        """Return the outputs that the card names; none where the model's first one is meant."""
        given = (getattr(self.output, field) for field in self.reads)
        return tuple(name for name in given if name)

    def check(self, shapes: Shapes) -> None:
        """Compare a model's outputs with what the card says of them.

        Args:
            shapes: of each output that :meth:`outputs` names, or of the first one; of the second of
                two networks, where there are two.

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

    def handed(self) -> tuple[str, ...]:
        """Return the first network's outputs that a second one's inputs are made of, if any."""
        return ()

    def check_handed(self, shapes: Shapes, inputs: Mapping[str, Port], outputs: Shapes) -> None:
        """Compare the first network's outputs, and the second's inputs, with what the card says.

        Args:
            shapes: of each output that :meth:`handed` names.
            inputs: of the second network.
            outputs: the shapes of its outputs that are read.

        Raises:
            ModelError: naming the output or input, what was expected and what it is.
        """

    def handover(self, settings: Settings) -> Handover | None:
        """Return how a second network's inputs are made; None: there is one network."""
        return None

    def beside(self, profile: Profile, choices: Choices) -> Beside | None:
        """Return what a second network is run on, once a stack; None: it follows the first.

        Args:
            profile: the stack.
            choices: the implementation of each of its stages.

        Raises:
            ModelError: the profile does not fit the card.
        """
        return None

    def takes_second(self, profile: Profile) -> bool:
        """Say whether a stack runs the card's second network, or something in its place."""
        return True

    def back_end(self, profile: Profile, choices: Choices) -> BackEnd | None:
        """Return the step from the network's outputs to what :meth:`decode` takes; None: none.

        Args:
            profile: the stack.
            choices: the implementation of each of its stages.

        Raises:
            ModelError: the profile does not fit the card.
        """
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

    def until(self, prediction: Any) -> tuple[int, ...]:
        """Return the nanoseconds until each part of a timed prediction that comes in parts."""
        return ()

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

    def score(self, records: Sequence[Record], truths: Sequence[Any]) -> Score:
        """Measure one stack; by default each metric is the mean of the column of its name.

        Args:
            records: one a sample.
            truths: what people have annotated, of the same samples in the same order.
        """
        return scores.mean_score(self.metrics, records, truths)

    def curves(
        self, records: Sequence[Record], truths: Sequence[Any]
    ) -> Mapping[str, Sequence[float]]:
        """Return precision over recalls from 0 to 1, by class; empty where there are no curves."""
        return {}

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
        return [
            self.record(prediction, known) | self.change(first, prediction, known)
            for prediction in predictions
        ]


TASKS: Table[type[Task]] = Table(
    "simulator.tasks", "task", lambda found: isinstance(found, type) and issubclass(found, Task)
)

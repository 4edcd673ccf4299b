"""The functions of this package; made by tools/stubs.py from the experiments' options."""

import collections.abc
import pathlib
import typing

import simulator.command.given
import simulator.command.options
from simulator.checkpoints.compare import checkpoints as checkpoints
from simulator.command.marks import gives as gives
from simulator.command.marks import takes as takes
from simulator.command.options import Options as Options
from simulator.experiments.job import Result as Result
from simulator.experiments.sensitivity.figures import SensitivitySummary
from simulator.experiments.tuning import TuningSummary
from simulator.model.card import load as load_card
from simulator.profile.load import load as load_profile
from simulator.render.run import RenderSummary
from simulator.results.audits import AuditSummary
from simulator.results.audits import ReplaySummary
from simulator.results.diagnose import DiagnoseSummary
from simulator.results.faults import FaultsSummary
from simulator.results.identify import IdentifySummary
from simulator.results.pair import PairSummary
from simulator.results.repair import RepairSummary
from simulator.results.robustness import RobustnessSummary
from simulator.results.suites import ExplainSummary
from simulator.results.suites import SweepSummary
from simulator.results.suites import WorstSummary
from simulator.results.tail import TailSummary
from simulator.results.timed import LatencySummary
from simulator.results.timed import LoadSummary
from simulator.robustness.corrupted import Written

class _Under(typing.TypedDict, total=False):
    under: str | None
    trial: int

class _Options(typing.TypedDict, total=False):
    out: str | pathlib.Path | None
    overwrite: bool
    resume: bool
    report: collections.abc.Callable[[pathlib.Path], object] | None
    workers: int | None
    memory: int | None
    progress: simulator.command.options.Progress | None | collections.abc.Callable[[int, int], object]
    executor: str
    python: str | None
    allow_code: bool
    isolate: typing.Literal['auto', 'always', 'never']

class _AuditOptions(_Under, _Options, total=False): ...

class _Changes(typing.TypedDict, total=False):
    train_artifact: str | pathlib.Path | None
    deploy_artifact: str | pathlib.Path | None
    overrides: collections.abc.Sequence[str]

class _Pair(_Changes, _Options, total=False):
    pixels: typing.Literal['own', 'train']

class _Subset(typing.TypedDict, total=False):
    limit: int | None
    seed: int

class _Samples(_Subset, total=False):
    data: str | pathlib.Path | None | collections.abc.Iterable[typing.Any] | simulator.command.given.DataSet

class _OneModel(_Samples, total=False):
    model: str | pathlib.Path | None | simulator.command.given.OnnxModel | simulator.command.given.Module
    card: str | pathlib.Path | collections.abc.Mapping[str, object] | None
    input: object

class _Allowed(typing.TypedDict, total=False):
    undecided: typing.Literal['pass', 'fail']
    allow_failed: str | None

class _Gate(_Allowed, total=False):
    fail_on: collections.abc.Sequence[str]

class _CompareOptions(_Pair, _OneModel, _Under, _Gate, total=False):
    strict: bool
    quick: bool
    until_decided: bool
    track: str | None

class _OwnFolder(typing.TypedDict, total=False):
    progress: simulator.command.options.Progress | None | collections.abc.Callable[[int, int], object]

class _CorruptOptions(_OneModel, _OwnFolder, total=False):
    under: collections.abc.Sequence[str]
    suite: str | None
    trial: int
    workers: int | None

class _DiagnoseOptions(_Pair, _OneModel, _Under, total=False): ...

class _ExplainOptions(_Pair, _OneModel, _Under, total=False): ...

class _Stacks(_Changes, _Options, total=False):
    train: str | None | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]
    deploy: str | None | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]

class _FaultsOptions(_Stacks, _OneModel, _Gate, total=False):
    number: int | None
    until: float | None
    protect: typing.Optional[typing.Literal['clip', 'min_max']]

class _TuningOptions(_Subset, _OwnFolder, total=False):
    epochs: typing.Required[int]
    learning_rate: float
    batch: int
    held_out: float
    profile: str | None | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]
    threads: int | None

class _FinetuneOptions(_TuningOptions, total=False):
    mix: str | None
    columns: collections.abc.Sequence[str] | None
    draw: str
    option: collections.abc.Sequence[str]
    augment: collections.abc.Sequence[str]
    statistics: str
    module: str | None
    weights: str | None
    name: str | None

class _IdentifyOptions(_OneModel, _Options, total=False):
    base: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]
    space: str | pathlib.Path | None
    minutes: float | None

class _TimedOptions(_Stacks, _OneModel, _Under, _Gate, total=False): ...

class _LatencyOptions(_TimedOptions, total=False):
    scenario: str
    queries: int
    seconds: float
    qps: float | None
    deadline_ms: float | None
    batch: collections.abc.Sequence[int]

class _QuantizeOptions(_TuningOptions, total=False):
    method: typing.Required[str]
    bits: typing.Required[int]
    weights: str

class _RenderOptions(_OneModel, _OwnFolder, total=False):
    format: typing.Literal['folder', 'tar', 'npy']
    overrides: collections.abc.Sequence[str]
    shard: int
    workers: int | None

class _RepairOptions(_OneModel, _Under, _Allowed, _Options, total=False):
    repairs: str | None
    gate: typing.Required[collections.abc.Sequence[str]]
    overrides: collections.abc.Sequence[str]
    until_decided: bool

class _ReplayOptions(_Options, total=False):
    models: collections.abc.Sequence[str]
    images: collections.abc.Sequence[str]
    overrides: collections.abc.Sequence[str]

class _Models(_Samples, total=False):
    models: collections.abc.Sequence[str | pathlib.Path | None | simulator.command.given.OnnxModel | simulator.command.given.Module]

class _Question(typing.TypedDict, total=False):
    until_decided: typing.Optional[typing.Literal['gate', 'worst-flips', 'worst-drop']]

class _RobustnessOptions(_Stacks, _Models, _Gate, _Question, total=False):
    only: collections.abc.Sequence[str]
    reference: str | pathlib.Path | None

class _SensitivityOptions(_OneModel, _OwnFolder, total=False):
    top: int
    workers: int | None

class _Suite(_Options, total=False):
    train: str | None | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]

class _SweepOptions(_Suite, _Models, _Under, _Gate, _Question, total=False):
    overrides: collections.abc.Sequence[str]
    costs: bool

class _TailOptions(_TimedOptions, total=False):
    scenario: str | None
    samples_per_query: int | None
    batch: collections.abc.Sequence[int]
    deadlines_ms: collections.abc.Sequence[float]
    rounds: typing.Union[int, typing.Literal['auto']]
    max_rounds: int
    max_minutes: float
    times: collections.abc.Sequence[str]

class _WorstOptions(_Suite, _OneModel, _Under, total=False):
    until_decided: bool

def audit(
    document: str | pathlib.Path,
    **options: typing.Unpack[_AuditOptions],
) -> Result[AuditSummary]: ...

def compare(
    train: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object],
    deploy: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object],
    **options: typing.Unpack[_CompareOptions],
) -> Result[PairSummary]: ...

def corrupt(
    out: str | pathlib.Path,
    **options: typing.Unpack[_CorruptOptions],
) -> list[Written]: ...

def diagnose(
    train: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object],
    deploy: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object],
    **options: typing.Unpack[_DiagnoseOptions],
) -> Result[DiagnoseSummary]: ...

def explain(
    train: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object],
    deploy: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object],
    **options: typing.Unpack[_ExplainOptions],
) -> Result[ExplainSummary]: ...

def faults(
    campaign: str,
    profiles: collections.abc.Sequence[str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]] = ...,
    **options: typing.Unpack[_FaultsOptions],
) -> Result[FaultsSummary]: ...

def finetune(
    model: str | pathlib.Path | simulator.command.given.OnnxModel | simulator.command.given.Module,
    data: str | pathlib.Path | collections.abc.Iterable[typing.Any] | simulator.command.given.DataSet,
    out: str | pathlib.Path,
    **options: typing.Unpack[_FinetuneOptions],
) -> TuningSummary: ...

def identify(
    recording: str | pathlib.Path,
    **options: typing.Unpack[_IdentifyOptions],
) -> Result[IdentifySummary]: ...

def latency(
    profiles: collections.abc.Sequence[str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]] = ...,
    **options: typing.Unpack[_LatencyOptions],
) -> Result[LatencySummary] | Result[LoadSummary]: ...

def quantize(
    model: str | pathlib.Path | simulator.command.given.OnnxModel | simulator.command.given.Module,
    data: str | pathlib.Path | collections.abc.Iterable[typing.Any] | simulator.command.given.DataSet,
    out: str | pathlib.Path,
    **options: typing.Unpack[_QuantizeOptions],
) -> TuningSummary: ...

def render(
    profile: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object],
    out: str | pathlib.Path,
    **options: typing.Unpack[_RenderOptions],
) -> RenderSummary: ...

def repair(
    train: str | None | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object] = ...,
    deploy: str | None | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object] = ...,
    **options: typing.Unpack[_RepairOptions],
) -> Result[RepairSummary]: ...

def replay(
    file: str | pathlib.Path,
    **options: typing.Unpack[_ReplayOptions],
) -> Result[ReplaySummary]: ...

def robustness(
    suite: str,
    profiles: collections.abc.Sequence[str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]] = ...,
    **options: typing.Unpack[_RobustnessOptions],
) -> list[Result[RobustnessSummary]]: ...

def sensitivity(
    profile: str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object],
    goal: str,
    out: str | pathlib.Path,
    **options: typing.Unpack[_SensitivityOptions],
) -> SensitivitySummary: ...

def sweep(
    suite: str,
    **options: typing.Unpack[_SweepOptions],
) -> list[Result[SweepSummary]]: ...

def tail(
    profiles: collections.abc.Sequence[str | pathlib.Path | collections.abc.Mapping[str, object] | simulator.command.given.LoadedProfile | collections.abc.Callable[..., object]] = ...,
    **options: typing.Unpack[_TailOptions],
) -> Result[TailSummary]: ...

def worst(
    suite: str,
    **options: typing.Unpack[_WorstOptions],
) -> Result[WorstSummary]: ...

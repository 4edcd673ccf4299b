"""Our own stages, as entries of the stage table."""

from __future__ import annotations

from simulator.contract.adapt import Adapter
from simulator.contract.backend import Stage
from simulator.contract.front_end import FrontEnd
from simulator.contract.model import Cast, Exporter, Quantizer, Runtime
from simulator.contract.pixels import Converter, Decoder, Encoder, Resizer
from simulator.contract.stage import CLAIMS, KEPT, REPEATS, StageSpec, checks, one_word, proved_by
from simulator.contract.tracking import Tracker, TrackMetrics
from simulator.contract.video import VideoReader

_STORAGE = ("precision", "storage")
_COMPUTE = ("precision", "compute")
_FORMAT = ("color", "format")
_PROFILE = ("color", "profile")
_WORK = "simulator.testing.work"
_MADE = (*CLAIMS, *proved_by("makers", "the_source_is_left_alone", "noise_is_refused"))
_NEAR = (
    *_MADE,
    *proved_by("makers", "the_same_twice", "the_numbers_stay_near"),
    *proved_by("number_formats", "numbers_by_hand"),
)

VIDEO = one_word(
    Stage.VIDEO,
    "a clip becomes frames",
    95,
    "image",
    step=None,
    base=VideoReader,
    calls=("rgb", "planes"),
    work="simulator.testing.videos:Watching",
    checks=(
        *CLAIMS,
        *proved_by(
            "videos",
            "every_frame_by_its_time",
            "color_is_as_declared",
            "planes_are_the_files_own",
            "what_is_no_clip_is_refused",
        ),
        *KEPT,
        *REPEATS,
    ),
)
DECODE = one_word(
    Stage.DECODE,
    "a file becomes pixels",
    100,
    "image",
    axis="decoder",
    base=Decoder,
    calls=("rgb", "planes", "raw"),
    shared=(_PROFILE,),
    work=f"{_WORK}:Decoding",
    checks=(
        *CLAIMS,
        *proved_by(
            "decoders",
            "flat_files_by_hand",
            "agrees_with_float64",
            "png_keeps_its_samples",
            "any_size_will_do",
            "exif_is_obeyed",
            "planes_are_as_claimed",
            "results_may_be_written",
            "bad_files_are_refused",
            "a_bad_file_leaves_no_trace",
        ),
        *proved_by(
            "formats",
            "formats_are_as_claimed",
            "turns_in_every_format",
            "color_profiles_are_obeyed",
        ),
        *KEPT,
        *REPEATS,
    ),
)
ENCODE = StageSpec(
    Stage.ENCODE,
    "RGB becomes YUV",
    200,
    modality="image",
    section=("color", "encode"),
    axis="color",
    step="color",
    base=Encoder,
    calls=("encode",),
    shared=(_FORMAT,),
    work=f"{_WORK}:Encoding",
    checks=checks(
        *proved_by(
            "colors",
            "gray_has_neutral_chroma",
            "encodes_like_float64",
            "the_frame_says_what_it_is",
            "encodes_any_size",
        )
    ),
)
CONVERT = StageSpec(
    Stage.CONVERT,
    "YUV becomes RGB",
    210,
    modality="image",
    section=("color", "convert"),
    axis="color",
    step="color",
    base=Converter,
    calls=("convert",),
    shared=(_FORMAT,),
    work=f"{_WORK}:Converting",
    checks=checks(
        *proved_by(
            "colors",
            "neutral_chroma_is_gray",
            "converts_like_float64",
            "it_assumes_what_it_says",
            "converts_any_size",
            "rgb_is_not_converted",
        )
    ),
)
RESIZE = one_word(
    Stage.RESIZE,
    "pixels are resampled",
    300,
    "image",
    base=Resizer,
    calls=("resize", "frame"),
    own=("domain",),
    work=f"{_WORK}:Resizing",
    checks=checks(
        *proved_by(
            "resizers",
            "a_flat_plane_stays_flat",
            "agrees_with_float64",
            "channels_do_not_mix",
            "any_size_will_do",
            "what_is_no_plane_is_refused",
        )
    ),
)
GEOMETRY = one_word("geometry", "pixels take the network's size", 400, "image")
INPUT_SIZE = StageSpec(
    "input_size",
    "in which sizes the network is deployed",
    401,
    modality="image",
    section=("geometry", "input_size"),
    axis="input_size",
)
NORMALIZE = one_word("normalize", "pixels become the network's numbers", 500, "image")
FRONT_END = one_word(
    Stage.FRONT_END,
    "what is not ours makes the network's input",
    590,
    None,
    base=FrontEnd,
    calls=("tensors", "several"),
    checks=(),
)
GRAPH = StageSpec(
    "graph", "the network's graph is rewritten", 600, section=("graph",), fields_are_axes=True
)
CAST = StageSpec(
    Stage.CAST,
    "weights are stored in another type",
    700,
    section=("precision", "cast"),
    axis="precision",
    base=Cast,
    shared=(_STORAGE,),
    work=f"{_WORK}:Making",
    checks=_NEAR,
)
QUANTIZE = StageSpec(
    Stage.QUANTIZE,
    "weights and activations become integers",
    710,
    section=("precision", "quantizer"),
    axis="precision",
    base=Quantizer,
    own=("calibration",),
    work=f"{_WORK}:Making",
    checks=(*_NEAR, *proved_by("integers", "scales_are_as_asked")),
)
SECOND_PRECISION = StageSpec(
    "second_precision",
    "the precision of a second network",
    720,
    section=("precision", "second"),
    axis="second_precision",
)
EXPORT = StageSpec(
    Stage.EXPORT,
    "the model is converted to the runtime's format",
    790,
    section=("runtime", "exporter"),
    axis="runtime",
    base=Exporter,
    work=f"{_WORK}:Making",
    checks=_MADE,
)
ADAPT = StageSpec(
    Stage.ADAPT,
    "the network adapts to the batches that it answers",
    795,
    section=("runtime", "adaptation"),
    axis="runtime",
    base=Adapter,
    shared=(("runtime", "device"), ("runtime", "threads"), ("runtime", "mode"), _COMPUTE),
    work="simulator.testing.adapters:Adapting",
    checks=(
        *CLAIMS,
        *proved_by(
            "adapters",
            "the_batch_gives_the_statistics",
            "it_learns_as_its_method_says",
            "an_episode_is_forgotten",
            "it_goes_on_where_it_stopped",
            "batches_and_answers_are_left_alone",
            "the_source_is_left_alone",
            "without_normalization_is_refused",
        ),
    ),
)
BATCH = StageSpec(
    "batch", "samples are put together", 798, section=("runtime", "batch"), axis="batch"
)
RUNTIME = StageSpec(
    Stage.RUNTIME,
    "the network runs",
    800,
    section=("runtime",),
    axis="runtime",
    step="infer",
    base=Runtime,
    calls=("run",),
    shared=(_STORAGE, _COMPUTE),
    own=("exporter", "adaptation", "batch", "resources"),
    work=f"{_WORK}:Running",
    checks=checks(
        *proved_by(
            "runtimes",
            "answers_by_hand",
            "agrees_with_onnx_reference",
            "outputs_fit_their_ports",
            "a_batch_is_its_singles",
            "samples_of_a_batch_stay_apart",
            "images_of_any_size_are_not_padded",
            "what_does_not_fit_is_refused",
            "closes_twice_and_then_refuses",
            "bad_models_are_refused",
        ),
        *proved_by("integers", "sums_are_as_asked"),
        *proved_by("texts", "a_text_goes_on"),
        *proved_by("honesty", "options_are_in_force", "precision_is_in_force"),
    ),
)
BETWEEN = StageSpec(
    "between",
    "what one of two networks gives is made ready for the other",
    820,
    step="between",
)
PROMPTS = StageSpec(
    "prompts",
    "class names become prompts",
    850,
    modality="image",
    section=("prompts",),
    axis="prompts",
)
POSTPROCESS = StageSpec(
    "postprocess",
    "outputs become answers",
    900,
    section=("postprocess",),
    fields_are_axes=True,
    step="postprocess",
)

LOAD = StageSpec(
    Stage.LOAD,
    "a load generator asks for answers",
    1000,
    work=f"{_WORK}:Loading",
    checks=(
        *CLAIMS,
        *proved_by(
            "loads",
            "asks_for_what_there_is",
            "single_stream_asks_one_at_a_time",
            "answered_twice_counts_once",
            "offline_and_server_do_not_wait",
            "arrivals_have_their_rate",
            "waiting_counts",
            "the_deadline_decides",
            "the_same_seed_asks_the_same",
            "what_submit_raises_comes_out",
            "its_logs_stay",
            "nothing_is_printed",
        ),
    ),
)
EXAMPLE_MODEL = StageSpec(Stage.EXAMPLE_MODEL, "an example model", 1100)
EXAMPLE_IMAGES = StageSpec(Stage.EXAMPLE_IMAGES, "example images", 1110, modality="image")
MASK = StageSpec(Stage.MASK, "masks are read", 1120, modality="image")
DRAW = StageSpec(Stage.DRAW, "pictures are drawn", 1130, modality="image")
WRITE = StageSpec(Stage.WRITE, "image files are written", 1140, modality="image")
NETWORK = StageSpec(Stage.NETWORK, "a network in memory becomes an ONNX file", 1147)
GRADIENT = StageSpec(
    Stage.GRADIENT,
    "a loss is followed back to the input",
    1150,
    work="simulator.testing.gradients:Following",
    checks=(
        *CLAIMS,
        *proved_by(
            "gradients",
            "scores_agree_with_onnx_reference",
            "agrees_with_differences",
            "the_way_back_stays",
            "bad_models_are_refused",
        ),
    ),
)
TUNE = StageSpec(
    Stage.TUNE,
    "a network learns",
    1150,
    work="simulator.testing.tuners:Tuning",
    checks=(
        *CLAIMS,
        *proved_by(
            "tuners",
            "the_loss_falls",
            "it_goes_on_where_it_stopped",
            "the_file_is_what_learned",
            "the_source_is_left_alone",
            "noise_is_refused",
        ),
    ),
)
ATTACK = StageSpec(Stage.ATTACK, "an image is changed until a classifier errs", 1160)
TRACK = StageSpec(
    Stage.TRACK,
    "boxes become tracks",
    1170,
    base=Tracker,
    work="simulator.testing.tracking:Following",
    checks=(
        *CLAIMS,
        *proved_by(
            "tracking",
            "every_frame_has_its_numbers",
            "no_number_stands_twice",
            "steady_objects_keep_their_numbers",
            "each_clip_begins_anew",
        ),
    ),
)
TRACK_METRICS = StageSpec(
    Stage.TRACK_METRICS,
    "tracks are measured",
    1180,
    base=TrackMetrics,
    work="simulator.testing.tracking:Measuring",
    checks=(*CLAIMS, *proved_by("tracking", "figures_by_hand", "clips_are_put_together")),
)

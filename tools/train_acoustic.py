"""Train a small acoustic model, phonemes to log-mel: TEXTS FOLDER --form fastspeech2 --minutes 8

It learns to say what the voice of hibari-tts says (``pip install --no-deps hibari-tts``): the
sentences of TEXTS, one a line, are spoken, and their log-mel spectrograms, durations and pitch are
what it is trained on. ``fastspeech2``: self-attention over phonemes, durations and pitch predicted
for each, self-attention over frames (Ren et al., 2021, without energy). ``tacotron2``: convolutions
and an LSTM over phonemes, an LSTM that makes frames from those before, convolutions behind (Shen et
al., 2018), with predicted durations in place of attention (Shen et al., Non-Attentive Tacotron,
2020). Both are some fifty times smaller than the papers', and minutes are no training: what they
say is understood, and far from good. FOLDER gets model.onnx and card.yaml; no weight is kept here.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from hibari import Hibari, dsp
from hibari_card import STEPS, with_durations
from torch import nn

from simulator.reference.sound import mel_filters

N_MELS, WIDTH, BATCH, FLOOR = 80, 128, 8, 1e-5
CARD = """\
schema: 1
name: {form}_small
summary: tools/train_acoustic.py, {minutes:g} minutes on {texts} sentences of hibari-tts
task: text_to_speech
model: model.onnx
input:
  {{kind: text, vocabulary: {symbols}, max_length: 4096, names: {{ids: ids}}}}
output:
  rate: 24000
  durations: durations
  spectrogram:
    {{outputs: [mel], features: log_mel, layout: NMT, n_fft: 1200, win_length: 1200, hop: 300,
     n_mels: 80, fmin: 0, fmax: 12000}}
  trained:
    stft:
      {{center: true, pad_mode: reflect, window: hann, window_symmetry: periodic, scaling: none,
       frames: whole, power: 1}}
    mel: {{scale: slaney, norm: slaney}}
    log: {{kind: ln, floor: max, value: 1.0e-5}}
"""


def positions(count: int) -> torch.Tensor:
    """Sinusoids, (count, WIDTH)."""
    turns = torch.arange(WIDTH // 2) / (WIDTH // 2)
    angles = torch.arange(count)[:, None] * torch.exp(-turns * 9.2)
    return torch.cat([torch.sin(angles), torch.cos(angles)], 1)


class Block(nn.Module):
    """Self-attention and convolutions, as FastSpeech's feed-forward Transformer block."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Conv1d(WIDTH, 2 * WIDTH, 3, padding=1)
        self.narrow = nn.Conv1d(2 * WIDTH, WIDTH, 1)

    def forward(self, values: torch.Tensor, absent: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(self.first(values)).chunk(3, 2)
        scores = query @ key.transpose(1, 2) / WIDTH**0.5 - 1e4 * absent[:, None]
        values = values + self.out(torch.softmax(scores, 2) @ value)
        inner = self.wide(self.second(values).transpose(1, 2))
        found = self.narrow(torch.relu(inner)).transpose(1, 2)
        return (values + found) * (1 - absent[..., None])


class Predictor(nn.Module):
    """One number for each phoneme."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = (nn.Conv1d(WIDTH, WIDTH, 3, padding=1) for _ in range(2))
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.one(values.transpose(1, 2)))
        inner = torch.relu(self.other(inner)).transpose(1, 2)
        return self.out(self.norm(inner))[..., 0]


class Acoustic(nn.Module):
    """What both forms share: phonemes, their durations and pitch, and how they become frames."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, WIDTH)
        self.durations, self.pitch = Predictor(), Predictor()
        self.pitched = nn.Conv1d(1, WIDTH, 3, padding=1)
        self.place = nn.Parameter(0.1 * torch.randn(WIDTH))

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Speak one text: (1, N_MELS, frames), and the frames of each phoneme."""
        absent = (0 * ids).float()  # no ConstantOfShape, which no converter to FP16 takes
        values = self.encode(ids, absent)
        units = torch.exp(self.durations(values)).detach() / STEPS
        spans = STEPS * units.round().clamp(min=1)
        values = values + self.pitched(self.pitch(values)[:, None]).transpose(1, 2)
        frames = self.stretched(values, spans)
        return self.decode(frames, 0 * frames[..., 0]).transpose(1, 2), spans

    def learned(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss."""
        values = self.encode(batch["ids"], batch["absent"])
        there = 1 - batch["absent"]
        off = (self.durations(values.detach()) - torch.log(batch["spans"].clamp(min=1))) ** 2
        tone = (self.pitch(values) - batch["pitch"]) ** 2
        values = values + self.pitched(batch["pitch"][:, None]).transpose(1, 2)
        frames = self.stretched(values, batch["spans"])
        silent = batch["silent"]
        found = self.decode(frames, silent, batch["mel"])
        mel = ((found - batch["mel"]).abs() * (1 - silent[..., None])).sum()
        return (
            mel / (1 - silent).sum() / N_MELS
            + ((off + tone) * there).sum() / there.sum()
        )  # fmt: skip

    def stretched(self, values: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
        """Repeat each phoneme for its frames, with the place within it."""
        ends = torch.cumsum(spans, 1)
        at = torch.arange(ends[:, -1].max())[None, :, None]
        index = (at >= ends[:, None]).sum(2).clamp(max=spans.shape[1] - 1)
        rows = torch.gather(values, 1, index[..., None].expand(-1, -1, WIDTH))
        place = (at[..., 0] - torch.gather(ends - spans, 1, index)) / 10.0
        return rows + place[..., None] * self.place


class FastSpeech2(Acoustic):
    """Self-attention over phonemes, and over frames."""

    def __init__(self, symbols: int) -> None:
        super().__init__(symbols)
        self.encoder = nn.ModuleList(Block() for _ in range(2))
        self.decoder = nn.ModuleList(Block() for _ in range(3))
        self.out = nn.Linear(WIDTH, N_MELS)

    def encode(self, ids: torch.Tensor, absent: torch.Tensor) -> torch.Tensor:
        values = self.embedding(ids) + positions(ids.shape[1])
        for block in self.encoder:
            values = block(values, absent)
        return values

    def decode(
        self, frames: torch.Tensor, absent: torch.Tensor, mel: torch.Tensor | None = None
    ) -> torch.Tensor:
        frames = frames + positions(frames.shape[1])
        for block in self.decoder:
            frames = block(frames, absent)
        return self.out(frames)


@torch.jit.script
def stepped(frames: torch.Tensor, prenet: list[torch.Tensor], cell: list[torch.Tensor],
            out: list[torch.Tensor]) -> torch.Tensor:  # fmt: skip
    """Make two frames at a time from those before, by an LSTM; scripted, so that it is a loop.

    Args:
        frames: (1, T / 2, 2 WIDTH), the phonemes of two frames each.
        prenet: weights and bias twice: what becomes of the frame before.
        cell: of the LSTM.
        out: weights and bias: the two frames.
    """
    mels = prenet[0].shape[1]
    hidden = torch.zeros(1, cell[1].shape[1])
    state, last = hidden, torch.zeros(1, mels)
    made = torch.zeros(1, 0, 2 * mels)
    for at in range(frames.shape[1]):
        given = torch.relu(torch.matmul(last, prenet[0].t()) + prenet[1])
        given = torch.relu(torch.matmul(given, prenet[2].t()) + prenet[3])
        row = torch.cat([given, frames[:, at]], 1)
        gates = torch.matmul(row, cell[0].t()) + cell[2]
        gates = gates + torch.matmul(hidden, cell[1].t()) + cell[3]
        enter, forget, new, leave = gates.chunk(4, 1)
        state = torch.sigmoid(forget) * state + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(state)
        both = torch.matmul(torch.cat([hidden, frames[:, at]], 1), out[0].t()) + out[1]
        last = both[:, mels:]
        made = torch.cat([made, both[:, None]], 1)
    return made


class Tacotron2(Acoustic):
    """Convolutions and an LSTM over phonemes, an LSTM over frames, convolutions behind."""

    def __init__(self, symbols: int) -> None:
        super().__init__(symbols)
        self.convolutions = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 5, padding=2) for _ in range(3))
        self.lstm = nn.LSTM(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.prenet = nn.Sequential(nn.Linear(N_MELS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.cell = nn.LSTMCell(3 * WIDTH, 2 * WIDTH)
        self.out = nn.Linear(4 * WIDTH, 2 * N_MELS)
        self.postnet = nn.Sequential(
            nn.Conv1d(N_MELS, WIDTH, 5, padding=2), nn.Tanh(),
            nn.Conv1d(WIDTH, WIDTH, 5, padding=2), nn.Tanh(),
            nn.Conv1d(WIDTH, N_MELS, 5, padding=2),
        )  # fmt: skip

    def encode(self, ids: torch.Tensor, absent: torch.Tensor) -> torch.Tensor:
        values = self.embedding(ids).transpose(1, 2)
        for layer in self.convolutions:
            values = values + torch.relu(layer(values))
        return self.lstm(values.transpose(1, 2))[0] * (1 - absent[..., None])

    def decode(
        self, frames: torch.Tensor, absent: torch.Tensor, mel: torch.Tensor | None = None
    ) -> torch.Tensor:
        pairs = frames.reshape(frames.shape[0], -1, 2 * WIDTH)
        parts = (list(part.parameters()) for part in (self.prenet, self.cell, self.out))
        both = stepped(pairs, *parts) if mel is None else self._forced(pairs, mel)
        plain = both.reshape(both.shape[0], -1, N_MELS)
        return plain + self.postnet(plain.transpose(1, 2)).transpose(1, 2)

    def _forced(self, pairs: torch.Tensor, mel: torch.Tensor) -> torch.Tensor:
        """The same with the true frames before each step, disturbed so that errors do not grow."""
        before = nn.functional.pad(mel[:, 1::2], (0, 0, 1, 0))[:, :-1]
        before = before + 0.3 * torch.randn_like(before)
        given = torch.relu(self.prenet(nn.functional.dropout(before, 0.3)))
        rows = torch.cat([nn.functional.dropout(given, 0.3), pairs], 2)
        weights, zeros = list(self.cell.parameters()), torch.zeros(1, len(pairs), 2 * WIDTH)
        states = torch.lstm(rows, (zeros, zeros), weights, True, 1, 0.0, False, False, True)[0]
        return self.out(torch.cat([states, pairs], 2))


FORMS = {"fastspeech2": FastSpeech2, "tacotron2": Tacotron2}


def spoken(texts: Path) -> list[dict[str, torch.Tensor]]:
    """What the voice makes of each sentence."""
    voice = Hibari()
    filters = mel_filters(dsp.SR, dsp.N_FFT, N_MELS, (0.0, dsp.SR / 2), "slaney", "slaney", "hertz")
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
        padded = np.pad(wave, dsp.N_FFT // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, dsp.N_FFT)[:: dsp.HOP]
        power = np.abs(np.fft.rfft(frames * dsp.WIN, axis=1))[: f0.shape[1]]
        mel = np.log(np.maximum(power @ filters.T, FLOOR))
        spans = (STEPS * spans.reshape(-1)).astype(int)
        pitch = [np.log(part[part > 40]).mean() - 5 if (part > 40).any() else 0.0
                 for part in np.split(f0[0], np.cumsum(spans)[:-1])]  # fmt: skip
        one = {"ids": ids, "spans": spans, "pitch": pitch, "mel": mel[: spans.sum()]}
        samples.append({name: torch.tensor(np.asarray(values)) for name, values in one.items()})
    return samples


def batched(samples: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Put samples together, padded with zeros."""
    found = {
        name: nn.utils.rnn.pad_sequence([one[name] for one in samples], batch_first=True)
        for name in samples[0]
    }
    found = {name: v if name == "ids" else v.float() for name, v in found.items()}
    counts = torch.tensor([len(one["ids"]) for one in samples])
    frames = torch.tensor([len(one["mel"]) for one in samples])
    found["absent"] = (torch.arange(found["ids"].shape[1]) >= counts[:, None]).float()
    found["silent"] = (torch.arange(found["mel"].shape[1]) >= frames[:, None]).float()
    return found


def trained(network: Acoustic, samples: list[dict[str, torch.Tensor]], minutes: float) -> None:
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
        if step % 100 == 0:
            print(f"{step} steps, {share:.0%}, loss {np.mean(losses[-100:]):.3f}", flush=True)


def export(network: Acoustic, file: Path) -> None:
    """Write the network as ONNX."""
    network.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, (torch.tensor([[0, 5, 9, 5, 7, 0]]),), str(file), dynamo=False,
            opset_version=17, input_names=["ids"], output_names=["mel", "durations"],
            dynamic_axes={"ids": {1: "L"}, "mel": {2: "T"}, "durations": {1: "L"}},
        )  # fmt: skip
    model = onnx.load(str(file))
    for node in model.graph.node:
        if node.op_type == "Loop":  # what it appends to grows, which the exporter does not see
            body = node.attribute[0].g
            for port in (*body.input[2:], *body.output[1:], *body.value_info):
                port.type.tensor_type.ClearField("shape")
    onnx.save(model, str(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--form", choices=FORMS, default="fastspeech2")
    parser.add_argument("--minutes", type=float, default=8.0, help="of processor time")
    asked = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)
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

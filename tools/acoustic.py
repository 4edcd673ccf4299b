"""Two small acoustic models, phonemes to log-mel, for tools/train_acoustic.py."""

from __future__ import annotations

import torch
from torch import nn

N_MELS, WIDTH, ATTENTION = 80, 128, 32
USUAL = -5.0
"""A log-mel value where speech is neither loud nor silent: what training begins with."""
TOGETHER, PATIENCE = 2, 15
"""Of tacotron2: frames of a step; steps a phoneme after which it stops at the latest."""


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


class FastSpeech2(nn.Module):
    """Phonemes, their durations and pitch, and how they become frames."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, WIDTH)
        self.durations, self.pitch = Predictor(), Predictor()
        self.pitched = nn.Conv1d(1, WIDTH, 3, padding=1)
        self.place = nn.Parameter(0.1 * torch.randn(WIDTH))
        self.encoder = nn.ModuleList(Block() for _ in range(2))
        self.decoder = nn.ModuleList(Block() for _ in range(3))
        self.out = nn.Linear(WIDTH, N_MELS)
        nn.init.constant_(self.out.bias, USUAL)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Speak one text: (1, N_MELS, frames), and the frames of each phoneme."""
        values = self.encode(ids, (0 * ids).float())  # no ConstantOfShape, which is hard to convert
        spans = torch.exp(self.durations(values)).detach().round().clamp(min=1)
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
        found = self.decode(frames, batch["silent"][:, : frames.shape[1]])
        return apart(found, batch) + ((off + tone) * there).sum() / there.sum()

    def encode(self, ids: torch.Tensor, absent: torch.Tensor) -> torch.Tensor:
        values = self.embedding(ids) + positions(ids.shape[1])
        for block in self.encoder:
            values = block(values, absent)
        return values

    def stretched(self, values: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
        """Repeat each phoneme for its frames, with the place within it."""
        ends = torch.cumsum(spans, 1)
        at = torch.arange(ends[:, -1].max())[None, :, None]
        index = (at >= ends[:, None]).sum(2).clamp(max=spans.shape[1] - 1)
        rows = torch.gather(values, 1, index[..., None].expand(-1, -1, WIDTH))
        place = (at[..., 0] - torch.gather(ends - spans, 1, index)) / 10.0
        return rows + place[..., None] * self.place

    def decode(self, frames: torch.Tensor, absent: torch.Tensor) -> torch.Tensor:
        frames = frames + positions(frames.shape[1])
        for block in self.decoder:
            frames = block(frames, absent)
        return self.out(frames)


def apart(mel: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the mean absolute difference from the voice's spectrogram."""
    count = mel.shape[1]
    there = 1 - batch["silent"][:, :count, None]
    return ((mel - batch["mel"][:, :count]).abs() * there).sum() / there.sum() / N_MELS


@torch.jit.script
def stepped(values: torch.Tensor, prenet: list[torch.Tensor], look: list[torch.Tensor],
            first: list[torch.Tensor], second: list[torch.Tensor], out: list[torch.Tensor],
            patience: int) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Make frames from those before until it says stop; scripted, so that it is a loop.

    Args:
        values: (1, L, WIDTH), of the phonemes.
        prenet: weights and bias twice: what becomes of the frame before.
        look: of the attention: of the state, of the phonemes, the convolution over where it has
            looked, and what becomes of that, of the sum.
        first, second: weights of the two LSTMs.
        out: weights and bias: the frames of a step, and whether it is the last.
        patience: steps a phoneme after which it stops.

    Returns:
        (1, steps, frames of a step), and (1, steps, L): where it has looked.
    """
    keys, mels = torch.matmul(values, look[1].t()), prenet[0].shape[1]
    hidden = torch.zeros(1, first[1].shape[1])
    state, inner, cell = hidden, hidden, hidden
    last, context = torch.zeros(1, mels), 0 * values[:, 0]
    now = 0 * values[:, :, 0]
    total = now
    made, looked = torch.zeros(1, 0, out[0].shape[0] - 1), now[:, None][:, :0]
    step, goes_on = 0, True
    while goes_on:
        given = torch.relu(torch.matmul(last, prenet[0].t()) + prenet[1])
        given = torch.relu(torch.matmul(given, prenet[2].t()) + prenet[3])
        gates = torch.matmul(torch.cat([given, context], 1), first[0].t()) + first[2]
        gates = gates + torch.matmul(hidden, first[1].t()) + first[3]
        enter, forget, new, leave = gates.chunk(4, 1)
        state = torch.sigmoid(forget) * state + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(state)
        where = torch.conv1d(torch.stack([now, total], 1), look[2], None, [1], [7])
        places = torch.matmul(where.transpose(1, 2), look[3].t())
        query = torch.matmul(hidden, look[0].t())[:, None]
        scores = torch.matmul(torch.tanh(query + keys + places), look[4].t())
        now = torch.softmax(scores[:, :, 0], 1)
        total = total + now
        context = torch.matmul(now[:, None], values)[:, 0]
        row = torch.cat([hidden, context], 1)
        gates = torch.matmul(row, second[0].t()) + second[2]
        gates = gates + torch.matmul(inner, second[1].t()) + second[3]
        enter, forget, new, leave = gates.chunk(4, 1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
        inner = torch.sigmoid(leave) * torch.tanh(cell)
        both = torch.matmul(torch.cat([inner, context], 1), out[0].t()) + out[1]
        frames = both[:, :-1]
        last = frames[:, -mels:]
        made = torch.cat([made, frames[:, None]], 1)
        looked = torch.cat([looked, now[:, None]], 1)
        step += 1
        goes_on = bool(both[0, -1] < 0) and step < patience * values.shape[1]
    return made, looked


class Tacotron2(nn.Module):
    """Convolutions and an LSTM over phonemes, attention and two LSTMs, convolutions behind."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, WIDTH)
        self.convolutions = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 5, padding=2) for _ in range(3))
        self.lstm = nn.LSTM(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.prenet = nn.Sequential(nn.Linear(N_MELS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.first = nn.LSTM(2 * WIDTH, 2 * WIDTH, batch_first=True)
        self.query = nn.Linear(2 * WIDTH, ATTENTION, bias=False)
        self.key = nn.Linear(WIDTH, ATTENTION, bias=False)
        self.where = nn.Conv1d(2, 16, 15, padding=7, bias=False)
        self.place = nn.Linear(16, ATTENTION, bias=False)
        self.score = nn.Linear(ATTENTION, 1, bias=False)
        self.second = nn.LSTM(3 * WIDTH, 2 * WIDTH, batch_first=True)
        self.out = nn.Linear(3 * WIDTH, TOGETHER * N_MELS + 1)
        nn.init.constant_(self.out.bias[:-1], USUAL)
        self.postnet = nn.Sequential(
            nn.Conv1d(N_MELS, WIDTH, 5, padding=2), nn.Tanh(),
            nn.Conv1d(WIDTH, WIDTH, 5, padding=2), nn.Tanh(),
            nn.Conv1d(WIDTH, N_MELS, 5, padding=2),
        )  # fmt: skip

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Speak one text: (1, N_MELS, frames), and the frames that looked at each phoneme most."""
        values = self.encode(ids)
        look = (self.query, self.key, self.where, self.place, self.score)
        parts = (list(part.parameters()) for part in (self.prenet, nn.ModuleList(look), self.first))
        made, looked = stepped(
            values, *parts, list(self.second.parameters()), list(self.out.parameters()),
            PATIENCE,
        )  # fmt: skip
        most = looked.argmax(2)[..., None] == torch.arange(ids.shape[1])
        plain = made.reshape(1, -1, N_MELS)
        return self.smoothed(plain).transpose(1, 2), TOGETHER * most.float().sum(1)

    def learned(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss: all steps at once, each after the voice's own frames and places."""
        values, mel = self.encode(batch["ids"]), batch["mel"]
        values = values * (1 - batch["absent"][..., None])
        steps = mel.shape[1] // TOGETHER
        ends = torch.cumsum(batch["spans"], 1)
        at = (torch.arange(steps)[None, :, None] * TOGETHER >= ends[:, None]).sum(2)
        at = at.clamp(max=values.shape[1] - 1)
        there = 1 - batch["silent"][:, ::TOGETHER]
        looked = nn.functional.one_hot(at, values.shape[1]).float()
        before = delayed(looked)
        given = delayed(mel[:, TOGETHER - 1 :: TOGETHER])
        given = torch.relu(self.prenet(nn.functional.dropout(given + noise(given, 0.3), 0.3)))
        context = looked @ values
        rows = torch.cat([nn.functional.dropout(given, 0.3), delayed(context)], 2)
        states = self.first(rows)[0]
        history = torch.stack([before, torch.cumsum(before, 1)], 2)
        history = (history + noise(history, 0.05)).flatten(0, 1)
        places = self.place(self.where(history).transpose(1, 2)).unflatten(0, before.shape[:2])
        scores = self.query(states)[:, :, None] + self.key(values)[:, None] + places
        scores = self.score(torch.tanh(scores))[..., 0] - 1e4 * batch["absent"][:, None]
        lost = nn.functional.cross_entropy(scores.transpose(1, 2), at, reduction="none")
        inner = self.second(torch.cat([states, context], 2))[0]
        both = self.out(torch.cat([inner, context], 2))
        ended = (torch.cumsum(there, 1) == there.sum(1, keepdim=True)).float()
        stop = nn.functional.binary_cross_entropy_with_logits(
            both[..., -1], ended, weight=1 + 9 * ended * there, reduction="none"
        )
        plain = both[..., :-1].reshape(mel.shape)
        return (
            apart(plain, batch) + apart(self.smoothed(plain), batch)
            + (lost * there).sum() / there.sum() + stop.mean()
        )  # fmt: skip

    def encode(self, ids: torch.Tensor) -> torch.Tensor:
        values = self.embedding(ids).transpose(1, 2)
        for layer in self.convolutions:
            values = values + torch.relu(layer(values))
        return self.lstm(values.transpose(1, 2))[0]

    def smoothed(self, plain: torch.Tensor) -> torch.Tensor:
        return plain + self.postnet(plain.transpose(1, 2)).transpose(1, 2)


def delayed(values: torch.Tensor) -> torch.Tensor:
    """What was there a step before; zeros at first."""
    return nn.functional.pad(values, (0, 0, 1, 0))[:, :-1]


def noise(values: torch.Tensor, size: float) -> torch.Tensor:
    """Disturb what was true, so that errors do not grow when it is the network's own."""
    return size * torch.randn_like(values)

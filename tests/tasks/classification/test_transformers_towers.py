"""CLIP and SigLIP of Transformers with random weights, in one file as Optimum exports them."""

import numpy as np
import pytest
import tiny_towers
from PIL import Image

from simulator import compare
from simulator.model import towers

NAMES = ("red", "green", "blue a")
TEMPLATE = "a photo of a {}."
WIDTHS = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4}  # fmt: skip
NUMBERS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.25]}
IDS = {"vocab_size": 8, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 1}


def clip(transformers):
    texts = WIDTHS | IDS | {"max_position_embeddings": 12}
    config = transformers.CLIPConfig(
        text_config=texts, vision_config=WIDTHS | {"image_size": 32, "patch_size": 8},
        projection_dim=16,
    )  # fmt: skip
    sizes = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
    return transformers.CLIPModel(config), transformers.CLIPImageProcessorPil(**sizes, **NUMBERS)


def siglip(transformers):
    texts = WIDTHS | IDS | {"max_position_embeddings": 12, "projection_size": 32}
    config = transformers.SiglipConfig(
        text_config=texts, vision_config=WIDTHS | {"image_size": 32, "patch_size": 8}
    )
    processor = transformers.SiglipImageProcessorPil(
        size={"height": 32, "width": 32}, resample=3, **NUMBERS
    )
    return transformers.SiglipModel(config), processor


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("made", "padding", "changes"),
    [(clip, 0, []), (siglip, 12, ["feeds.pad_to=12", "feeds.mask=ignored"])],
    ids=["CLIP", "SigLIP"],
)
def test_answers_are_those_of_transformers(tmp_path, made, padding, changes):
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    tokenizers = pytest.importorskip("tokenizers")
    torch.manual_seed(0)
    model, processor = made(transformers)
    model.eval()
    for weights in model.parameters():
        weights.data *= 3 if weights.ndim > 1 else 1
    model.logit_scale.data.fill_(2.0)
    if padding:
        model.logit_bias.data.fill_(-1.0)
    source = tmp_path / "export" / "onnx"
    source.mkdir(parents=True)
    tiny_towers.card(tmp_path / "export")
    (tmp_path / "export" / "tokenizer_config.json").write_text('{"pad_token": "<s>"}')
    model.config.save_pretrained(tmp_path / "export")
    processor.save_pretrained(tmp_path / "export")
    images = pictures(tmp_path / "images")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "export" / "tokenizer.json"))
    tokenizer.enable_padding(pad_id=0, pad_token="<s>", length=padding or None)
    texts = tokenizer.encode_batch([TEMPLATE.format(name) for name in NAMES])
    given = {"input_ids": torch.tensor([one.ids for one in texts]),
             "pixel_values": processor(images, return_tensors="pt")["pixel_values"]}  # fmt: skip
    if not padding:
        given["attention_mask"] = torch.tensor([one.attention_mask for one in texts])
    with torch.no_grad():
        expected = model(**given).logits_per_image.double()
    export(torch, model, given, source / "model.onnx")
    card = towers.write(source / "model.onnx", tmp_path / "cut", "classes.txt")
    (card.parent / "classes.txt").write_text("\n".join(NAMES))
    overrides = [f"{side}.{one}" for side in ("train", "deploy") for one in changes]
    run = compare(
        "clip_fp32", "clip_fp32", model=card, data=tmp_path / "images", out=tmp_path / "run",
        overrides=overrides,
    )  # fmt: skip
    records = [one for one in run.records().to_pylist() if one["side"] == "train"]
    scores = expected.sigmoid() if padding else expected.softmax(1)

    assert [one["prediction"] for one in records] == expected.argmax(1).tolist()
    assert [one["score"] for one in records] == pytest.approx(scores.max(1)[0].tolist(), abs=1e-4)


def pictures(folder):
    folder.mkdir()
    random, found = np.random.default_rng(1), []
    for number in range(6):
        tiles = np.kron(random.integers(0, 256, (6, 8, 3)), np.ones((8, 8, 1))).astype(np.uint8)
        found.append(Image.fromarray(tiles[: 40 + number, : 60 - number]))
        found[-1].save(folder / f"{number}.png")
    return found


def export(torch, model, given, target):
    outputs = ("logits_per_image", "text_embeds", "image_embeds")

    class One(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *values):
            found = self.model(**dict(zip(given, values, strict=True)))
            return tuple(getattr(found, name) for name in outputs)

    texts = {0: torch.export.Dim("texts", min=1, max=64),
             1: torch.export.Dim("tokens", min=1, max=12)}  # fmt: skip
    sizes = [{0: torch.export.Dim("images", min=1, max=64)} if name == "pixel_values" else texts
             for name in given]  # fmt: skip
    torch.onnx.export(
        One(), tuple(given.values()), target, dynamo=True, external_data=False, verbose=False,
        input_names=list(given), output_names=list(outputs), dynamic_shapes=(tuple(sizes),),
    )  # fmt: skip

"""Write the phoneme ids of sentences, for voices of Piper: phonemes.py VOICE.onnx TEXTS FOLDER

TEXTS has a line ``NAME|TEXT`` for each sentence; each becomes FOLDER/NAME.json, a text sample with
its ids. The phonemes come from piper-tts (GPL-3.0-or-later), which this package neither contains
nor needs: install it yourself, ``pip install piper-tts``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    voice, texts, folder = map(Path, sys.argv[1:])
    try:
        from piper import PiperVoice
    except ImportError as error:
        why = f"piper-tts is not installed: {error}; try: pip install piper-tts"
        raise SystemExit(why) from None
    opened = PiperVoice.load(str(voice))
    folder.mkdir(parents=True, exist_ok=True)
    for line in texts.read_text(encoding="utf-8").splitlines():
        name, _, text = line.partition("|")
        phonemes = [one for sentence in opened.phonemize(text) for one in sentence]
        ids = opened.phonemes_to_ids(phonemes)
        sample = {"requests": [{"context": text, "ids": ids}]}
        content = json.dumps(sample, ensure_ascii=False)
        (folder / f"{name}.json").write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

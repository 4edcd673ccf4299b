"""Write the WAV files of a folder at another sample rate: resampled.py FROM TO RATE

By soxr's best filter, as 32-bit floats: nothing is lost but what the rate cannot hold.
"""

from __future__ import annotations

import sys
from pathlib import Path

import soundfile
import soxr


def main() -> None:
    source, target, rate = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(source.glob("*.wav")):
        samples, own = soundfile.read(file, dtype="float32")
        soundfile.write(
            target / file.name, soxr.resample(samples, own, rate, "VHQ"), rate, subtype="FLOAT"
        )


if __name__ == "__main__":
    main()

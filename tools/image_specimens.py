"""Write the small files by which the conformance suite knows whether a decoder reads a format.

    python tools/image_specimens.py

Each holds ``simulator.testing.formats.picture()``; ``turned.*`` the same with orientation 6.
Lossless but for AVIF and HEIC, whose chroma is whole. A GIF, a BMP, a JPEG 2000 are never turned.
"""

import io

import pillow_heif
import pillow_jxl  # noqa: F401  registers itself
from PIL import Image

from simulator.testing.formats import FOLDER, picture

HOW = {
    "webp": ("WEBP", {"lossless": True, "method": 6}, True),
    "avif": ("AVIF", {"quality": 100, "subsampling": "4:4:4"}, True),
    "heic": ("HEIF", {"quality": -1, "chroma": 444}, True),
    "jxl": ("JXL", {"lossless": True}, True),
    "jpeg2000": ("JPEG2000", {}, False),
    "tiff": ("TIFF", {"compression": "tiff_adobe_deflate"}, True),
    "bmp": ("BMP", {}, False),
    "gif": ("GIF", {}, False),
}


def main() -> None:
    pillow_heif.register_heif_opener()
    FOLDER.mkdir(exist_ok=True)
    image = Image.fromarray(picture())  # few colors: exact in a GIF, too
    exif = Image.Exif()
    exif[0x0112] = 6
    for name, (codec, options, turns) in HOW.items():
        for stem, more in (("plain", {}), ("turned", {"exif": exif.tobytes()})):
            if more and not turns:
                continue
            file = io.BytesIO()
            image.save(file, codec, **options, **more)
            (FOLDER / f"{stem}.{name}").write_bytes(file.getvalue())
    print(sum(path.stat().st_size for path in FOLDER.iterdir()), "bytes")


if __name__ == "__main__":
    main()

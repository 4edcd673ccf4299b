"""The example images: the 20 labelled ImageNet photographs in foolbox's wheel."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from simulator.contract import Backend, ExampleImages, Library, MissingLibrary, Offer, Stage
from simulator.contract.installing import install

foolbox = Library("foolbox", distribution="foolbox", extra="demo")


class FoolboxImages(ExampleImages):
    """``foolbox/data/imagenet_NN_CLASS.jpg``; foolbox itself is not imported."""

    def files(self) -> list[tuple[Path, int]]:
        """Return the 20 files, each with the class index in its name."""
        try:
            listed = importlib.metadata.files("foolbox") or []
        except importlib.metadata.PackageNotFoundError as error:
            raise MissingLibrary(
                "the example images are part of foolbox, which is not installed; "
                f"try: {install('demo')}"
            ) from error
        found = [Path(str(f.locate())) for f in listed if f.match("foolbox/data/imagenet_*.jpg")]
        return [(file, int(file.stem.rsplit("_", 1)[1])) for file in sorted(found)]


BACKEND = Backend(
    name="foolbox",
    summary="the example images: 20 labelled ImageNet photographs",
    library=foolbox,
    offers=(Offer(Stage.EXAMPLE_IMAGES, {}, FoolboxImages),),
)

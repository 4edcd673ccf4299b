"""To be written."""

from simulator.contract import Backend, Library

BACKEND = Backend(
    name="nvimagecodec",
    summary="to be written",
    library=Library(
        "nvidia.nvimgcodec", distribution="nvidia-nvimgcodec-cu12", extra="nvimagecodec"
    ),
    offers=(),
)

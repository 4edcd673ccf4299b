"""libsoxr, the resampler of SoX; librosa's default."""

from __future__ import annotations

from simulator.contract import Array, Backend, Library, Offer, Resampler, Stage

_LIBRARY = Library("soxr", distribution="soxr", extra="audio")


class SoxrResampler(Resampler):
    """Resamples with ``soxr.resample``; *quality* is one of its recipes."""

    def _resample(self, samples: Array, rate: int, wanted: int) -> Array:
        found: Array = _LIBRARY.resample(samples, rate, wanted, self.options["quality"].upper())
        return found


BACKEND = Backend(
    name="soxr",
    summary="libsoxr: windowed sinc filters from very high to quick",
    library=_LIBRARY,
    offers=(
        Offer(
            Stage.RESAMPLE,
            {"quality": ("vhq", "hq", "mq", "lq", "qq")},
            SoxrResampler,
            source="https://python-soxr.readthedocs.io: resample; librosa's res_type soxr_hq",
        ),
    ),
)

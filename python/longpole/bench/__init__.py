"""Measure programs and functions, and compare what was measured."""

from longpole.bench.extraction import Extraction, Extractor, MeasuredRow, extract, formats
from longpole.bench.legacy import ProfileResult, extract_profile_result

__all__ = [
    "Extraction",
    "Extractor",
    "MeasuredRow",
    "ProfileResult",
    "extract",
    "extract_profile_result",
    "formats",
]

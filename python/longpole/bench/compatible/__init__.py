"""Interfaces of other tools, for programs written for them."""

from longpole.bench.compatible.aitemplate import ProfileResult, extract_profile_result

__all__ = ["ProfileResult", "extract_profile_result"]

"""Chakra graphs: functions to read, check, replay and write them, and Chakra's own functions.

Examples
--------
>>> from longpole import chakra, link_execution_trace
>>> linked = link_execution_trace("et.json", "kineto.json")  # doctest: +SKIP
>>> chakra.write_chakra(linked, "rank.0.et")  # doctest: +SKIP
>>> chakra.read_chakra("rank.0.et").check().is_empty()  # doctest: +SKIP
True
"""

from longpole.formats.convert.chakra import (
    ChakraTrace,
    load_sync_dependencies,
    read_chakra,
    write_chakra,
    write_et_plus,
    write_parquet,
)
from longpole.jobs.linked_ranks import LinkedRanks, RankPair, link_ranks

__all__ = [
    "ChakraTrace",
    "LinkedRanks",
    "RankPair",
    "link_ranks",
    "load_sync_dependencies",
    "read_chakra",
    "write_chakra",
    "write_et_plus",
    "write_parquet",
]

"""JSON documents read one element at a time: the same as json.loads, in bounded memory."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.files.json_elements import JsonLimitError, json_elements

if TYPE_CHECKING:
    from pathlib import Path

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(members=st.dictionaries(st.text(), VALUES), is_packed=st.booleans())
def test_the_elements_are_those_of_the_document(tmp_path_factory, members, is_packed):
    path = tmp_path_factory.getbasetemp() / "document.json"
    text = json.dumps({**members, "list": [1, [2]], "nested": {"a": [3, {}], "b": 4}}).encode()
    path.write_bytes(gzip.compress(text) if is_packed else text)
    found = dict(json_elements(path, {"list": 1, "nested": 2}))
    own = {(key,): value for key, value in members.items() if key not in {"list", "nested"}}
    inside = {("list", 0): 1, ("list", 1): [2], ("nested", "a", 0): 3, ("nested", "a", 1): {}}
    assert found == own | inside | {("nested", "b"): 4}


@pytest.mark.parametrize("text", ['{"a":[1', '{"a" 1}', "[1 2]", "[1]]", "{1:2}", '["', "", "[tru"])
def test_what_is_not_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "document.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"\w"):
        list(json_elements(path, {}))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '["' + "x" * 9_000_000 + '"]'], ids=["deep", "long"]
)
def test_an_element_that_would_take_all_memory_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "document.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(JsonLimitError):
        list(json_elements(path, {}))


def test_half_a_character_is_replaced_and_a_pair_of_halves_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        r'{"\ud800": ["a\udfff", {"\uD83D\uDE00": 1}], "deep": ' + "[" * 600 + r'"\ud800"'
    )
    found = json_elements(path, {})
    assert next(found) == (("?",), ["a?", {"\U0001f600": 1}])
    path.write_text('{"deep": ' + "[" * 900 + r'"\ud800"' + "]" * 900 + "}")
    with pytest.raises(JsonLimitError):
        list(json_elements(path, {}))

"""What longpole is built from is on the list, and its licences are allowed."""

from __future__ import annotations

import doctest
import shutil

import pytest

from oracles import audit


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_every_crate_is_on_the_list_and_has_an_allowed_licence():
    crates = audit.dependencies()
    assert [problem for crate in crates for problem in audit.problems_of(crate)] == []
    assert audit.doubles(crates) == []
    assert audit.LIST.read_text(encoding="utf-8") == audit.listed(crates)


def test_the_licences_of_what_is_linked_go_with_the_wheel():
    crates = audit.linked()
    assert {"regex", "flate2"} <= {crate["name"] for crate in crates}
    assert audit.TEXTS.read_text(encoding="utf-8") == audit.license_texts(crates)


def test_a_crate_from_elsewhere_or_with_another_licence_is_a_problem():
    crate = {"name": "a", "version": "1", "source": "git+https://x", "license": "GPL-3.0-only"}
    assert len(audit.problems_of(crate)) == 2
    assert doctest.testmod(audit).failed == 0


def test_a_crate_in_two_versions_needs_a_reason():
    known = [{"name": "getrandom", "version": version} for version in ("0.2.17", "0.3.4")]
    known += [{"name": "syn", "version": version} for version in ("2.0.119", "3.0.9")]
    assert audit.doubles(known) == []
    new = [{"name": "a", "version": version} for version in ("1.0.0", "2.0.0")]
    assert audit.doubles(known + new) == ["a has several versions: 1.0.0, 2.0.0"]
    assert "syn@2.0.119" in audit.doubles(known[:2])[0]

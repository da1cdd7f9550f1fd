"""What names mean: every part of longpole that speaks of a call means the same by its name."""

import polars as pl
import pytest

import longpole
from longpole._core import api_names
from longpole.files.vocabulary import additions
from styles import document
from tiny_traces import call, kernel, launch, operator, read, span

ROLES_THAT_WAIT = {
    "device_synchronize",
    "stream_synchronize",
    "event_synchronize",
    "allocate",
    "free",
    "load_module",
    "unload_module",
}
NAMES = api_names()


def long_call_behind_a_kernel(name):
    """Make a call that goes on until just after the end of a kernel that was launched before."""
    return [launch(0, 5, 1), kernel("K", 10, 100, 1), call(name, 20, 102)]


def waits_in_product(trace):
    return "sync_return" in trace.critical_path(whole=True).edges["kind"].to_list()


@pytest.mark.parametrize("role", sorted({role for _, role in NAMES}))
def test_the_path_and_the_blocking_calls_agree_on_every_name(role):
    for name in [name for name, its_role in NAMES if its_role == role]:
        events = long_call_behind_a_kernel(name)
        trace = read(events)
        waits = waits_in_product(trace)
        assert waits == (role in ROLES_THAT_WAIT), name
        is_blocking = 2 in trace.blocking_calls["event"].to_list()
        assert is_blocking == (waits or role == "blocking_copy"), name


def has_versions(name):
    return name[0].islower() and " " not in name and "::" not in name and name != "synchronize"


@pytest.mark.parametrize("ending", ["_v2", "_ptsz", "_v3020"])
def test_a_name_with_a_version_or_a_stream_means_the_same(ending):
    named = [(name + ending, role) for name, role in NAMES if has_versions(name)]
    trace = read([call(name, 9 * place, 9 * place + 5) for place, (name, _) in enumerate(named)])
    assert list(zip(trace.events["name"], trace.api_roles["role"], strict=True)) == named


VOCABULARY = """
[api]
device_synchronize = "^acmeDrain"

[kernels]
communication = ["^ring_(send|get)", "mesh_sum"]

[categories]
kernel = "^acme_device$"

[data_loading]
functions = "fetch_batch"
"""


def test_a_user_adds_names_in_a_file(tmp_path):
    file = tmp_path / "names.toml"
    file.write_text(VOCABULARY)
    events = [
        launch(0, 5, 1),
        kernel("mesh_sum_f32", 10, 100, 1, category="acme_device"),
        call("acmeDrain", 20, 102),
        span("python_function", "app.py(3): fetch_batch", 110, 150),
    ]
    data = document(events)
    trace = longpole.read_trace(data, vocabulary=file)
    assert trace.launches["work_class"].to_list() == ["communication"]
    assert trace.blocking_calls["event"].to_list() == [2]
    kinds = (
        longpole.read_trace(data, vocabulary=file)
        .critical_path(whole=True)
        .segments["kind"]
        .to_list()
    )
    assert "data_loading" in kinds
    assert longpole.read_trace(data).launches.is_empty()


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        ({"kernels": {"comm": "x"}}, "it has compute, communication, copy"),
        ({"kernel": {"copy": "x"}}, "it has api, kernels, categories, data_loading"),
        ({"api": {"launch": "("}}, "invalid regular expression"),
        ({"api": "launch"}, "a table of meanings"),
        ({"api": {"launch": 3}}, "a regular expression or a list"),
    ],
)
def test_a_vocabulary_that_cannot_be_is_refused_with_what_can(vocabulary, message):
    with pytest.raises(ValueError, match=message):
        longpole.read_trace(document([operator("A", 0, 1)]), vocabulary=vocabulary)


def test_a_vocabulary_that_is_not_toml_names_its_file(tmp_path):
    file = tmp_path / "names.toml"
    file.write_text("[api\n")
    with pytest.raises(ValueError, match=r"names\.toml is not a TOML file"):
        additions(file)


def test_arguments_decide_before_names():
    """A record of a collective makes a kernel communication; memory kinds make a copy pageable."""
    events = [
        launch(0, 5, 1),
        kernel("K", 10, 20, 1) | {"args": {"stream": 7, "correlation": 1, "Collective name": "x"}},
    ]
    assert read(events).launches["work_class"].to_list() == ["communication"]


@pytest.mark.parametrize("kind", ["pageable", "pinned"])
def test_a_copy_of_the_newer_exporter_says_its_memory_in_arguments(kind):
    """The call returns while the copy still runs: staged memory is why, pinned memory is not."""
    copy = kernel("HtoD", 10, 100, 1, category="gpu_memcpy")
    copy["args"] |= {"src kind": kind, "dst kind": "device", "copy kind": "HtoD"}
    events = [call("cudaMemcpyAsync", 0, 50, 1), copy]
    edges = read(events).critical_path(whole=True).edges
    is_staged = edges.filter(pl.col("role") == "staging").height == 1
    assert is_staged == (kind == "pageable")


def test_waits_that_mtia_lists_as_kernels_are_waits():
    wait = kernel("event_wait", 30, 90, 3, stream=2, category="mtia_ccp_events")
    wait["args"]["wait_on_stream"] = 1
    events = [
        wait,
        kernel("event_wait", 100, 120, 4, category="mtia_ccp_events"),
        kernel("dma_request", 120, 130, 5, category="mtia_ccp_events"),
    ]
    assert read(events).events["kind"].to_list() == ["synchronization", "kernel", "copy"]

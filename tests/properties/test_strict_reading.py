"""Strict reading is RFC 8259: what it allows is read, what it forbids is refused."""

import json

import pytest
from rfc8259 import ALLOWED, FORBIDDEN

import longpole
from styles import STYLES, document

ALL_ALLOWED = [text for texts in ALLOWED.values() for text in texts]
ALL_FORBIDDEN = [text for texts in FORBIDDEN.values() for text in texts]

PLACES = {
    "an argument that is kept": b'[{"ph":"X","name":"n","ts":1,"dur":1,"args":{"kept":%b}}]',
    "an argument that is not": b'[{"ph":"X","name":"n","ts":1,"dur":1,"args":{"other":%b}}]',
    "a field that nobody reads": b'[{"ph":"X","name":"n","ts":1,"dur":1,"cname":%b}]',
    "a list in an argument": b'[{"ph":"X","name":"n","ts":1,"args":{"kept":[0,%b,"a"]},"dur":1}]',
    "the header": b'{"traceEvents":[{"ph":"X","name":"n","ts":1,"dur":1}],"mine":%b}',
    "before the events": b'{"mine":%b,"traceEvents":[{"ph":"X","name":"n","ts":1,"dur":1}]}',
}
FIELDS = {
    f"{field} of {phase}": b'[{"ph":"%b","name":"n","cat":"c","ts":1,"pid":1,"tid":2,"%b":%%b}]'
    % (phase.encode(), field.encode())
    for phase in "XMCsfiBEbN"
    for field in ("cname", "id", "args", "bp")
}
UNREAD = {
    f"{field} of {phase}": b'[{"ph":"%b","name":"n","pid":1,"tid":2,%b"%b":%%b}]'
    % (phase.encode(), b"" if phase == "M" else b'"ts":1,', field.encode())
    for phase, field in [("M", "ts"), *((phase, "dur") for phase in "MCsfEbne")]
}


def read_strictly(data):
    return longpole.read_trace(data, strict=True, args=["kept"])


def is_refused(data):
    """Whether bytes are refused, with an error that names a place in them."""
    try:
        trace = read_strictly(data)
    except longpole.TraceError as error:
        return 0 <= error.offset <= len(data)
    assert trace.status == "ok"
    return False


def read_wrongly(place):
    """List the texts that are refused at a place against the rules, and those that are not."""
    refused = [text for text in ALL_ALLOWED if is_refused(place % text)]
    return refused, [text for text in ALL_FORBIDDEN if not is_refused(place % text)]


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_what_the_rules_allow_is_read_and_what_they_forbid_is_refused(place):
    assert read_wrongly(place) == ([], [])
    assert {read_strictly(place % text).n_events for text in ALL_ALLOWED} == {1}


@pytest.mark.parametrize("place", FIELDS.values(), ids=FIELDS)
def test_fields_that_are_skipped_are_held_to_the_rules(place):
    assert read_wrongly(place) == ([], [])


@pytest.mark.parametrize("place", UNREAD.values(), ids=UNREAD)
def test_times_that_nobody_reads_are_held_to_the_rules(place):
    assert read_wrongly(place)[1] == []
    for text in ALL_FORBIDDEN:
        longpole.read_trace(place % text)


def test_what_the_rules_forbid_is_no_document_either():
    assert [text for text in ALL_FORBIDDEN if not is_refused(text)] == []


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_every_sound_style_is_read_but_a_byte_order_mark_is_refused(style):
    data = document([{"ph": "X", "name": "n", "ts": 1, "dur": 1}], style)
    if style.mark:
        with pytest.raises(longpole.TraceError):
            read_strictly(data)
    else:
        assert read_strictly(data).n_events == 1


@pytest.mark.parametrize(
    "data",
    [
        b"[] []",
        b"[] x",
        b"[]\0",
        b'{"traceEvents":[]}}',
        b'{"traceEvents":[]},',
        b'{"traceEvents":[],}',
        b'{,"traceEvents":[]}',
        b'{"traceEvents":[,]}',
        b'{"traceEvents":[]',
        b'{"traceEvents":[}',
        b'{"traceEvents" []}',
        b"[{},]",
        b"[{}{}]",
        b"[{},,{}]",
        b"[{}",
        '[{"ph":"X","name":"n","ts":1,"dur":1}]'.encode("utf-16"),
    ],
    ids=repr,
)
def test_the_frame_of_the_document_keeps_the_rules_too(data):
    with pytest.raises(longpole.TraceError):
        read_strictly(data)


def test_the_cases_that_are_allowed_are_so_for_another_reader():
    """Hold the list of cases itself to a reader that is not ours; it raises where not."""
    for text in ALL_ALLOWED:
        assert json.dumps(json.loads(text))

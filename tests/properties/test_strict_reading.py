"""Strict reading is RFC 8259: what it allows is read, what it forbids is refused."""

import json

import pytest
from rfc8259 import ALLOWED, FORBIDDEN

import longpole
from styles import STYLES, document

allowed = pytest.mark.parametrize(
    "text", [text for texts in ALLOWED.values() for text in texts], ids=repr
)
forbidden = pytest.mark.parametrize(
    "text", [text for texts in FORBIDDEN.values() for text in texts], ids=repr
)

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
places = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


def read_strictly(data):
    return longpole.read_trace(data, strict=True, args=["kept"])


@places
@allowed
def test_what_the_rules_allow_is_read(place, text):
    trace = read_strictly(place % text)
    assert (trace.n_events, trace.status) == (1, "ok")


@places
@forbidden
def test_what_the_rules_forbid_is_refused(place, text):
    with pytest.raises(longpole.TraceError) as error:
        read_strictly(place % text)
    assert 0 <= error.value.offset <= len(place % text)


def is_refused(data):
    try:
        read_strictly(data)
    except longpole.TraceError:
        return True
    return False


@pytest.mark.parametrize("place", FIELDS.values(), ids=FIELDS)
def test_fields_that_are_skipped_are_held_to_the_rules(place):
    texts = [text for texts in FORBIDDEN.values() for text in texts]
    assert [text for text in texts if not is_refused(place % text)] == []
    texts = [text for texts in ALLOWED.values() for text in texts]
    assert [text for text in texts if is_refused(place % text)] == []


@pytest.mark.parametrize("place", UNREAD.values(), ids=UNREAD)
def test_times_that_nobody_reads_are_held_to_the_rules(place):
    texts = [text for texts in FORBIDDEN.values() for text in texts]
    assert [text for text in texts if not is_refused(place % text)] == []
    for text in texts:
        longpole.read_trace(place % text)


@forbidden
def test_what_the_rules_forbid_is_no_document_either(text):
    with pytest.raises(longpole.TraceError):
        read_strictly(text)


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


@allowed
def test_the_cases_that_are_allowed_are_so_for_another_reader(text):
    """Hold the list of cases itself to a reader that is not ours; it raises where not."""
    assert json.dumps(json.loads(text))

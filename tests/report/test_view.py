"""The server of `longpole view` answers only the holder of the token."""

from __future__ import annotations

import http.client
import socket
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest

from longpole.cli import program
from longpole.cli.ask.options import Options
from longpole.cli.ask.windows import Asked
from longpole.cli.view import Server, _fill, perfetto_link
from longpole.testing import TraceBuilder


@pytest.fixture
def server(tmp_path):
    trace = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(0, 5), work=(6, 90))
    path = trace.write(tmp_path / "trace.json")
    options = Options("text", "never", debug=False)
    with Server() as found:
        _fill(found, str(path), options, Asked())
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(server, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def opened(server):
    response, _ = ask(server, f"/open/{server.token}")
    return response.getheader("Set-Cookie").partition(";")[0]


def test_the_token_opens_the_page_once(server):
    token = server.token
    assert ask(server, "/open/wrong")[0].status == 404
    cookie = opened(server)
    response, body = ask(server, "/", Cookie=cookie)
    assert response.status == 200
    assert b"Content-Security-Policy" in body
    assert b"gemm" in body
    assert ask(server, f"/open/{token}")[0].status == 404


@pytest.mark.parametrize("path", ["/", "/report.html", "/../etc/passwd", "/.zip"])
def test_without_it_there_is_nothing(server, path):
    response, body = ask(server, path)
    assert (response.status, body) == (404, b"")
    assert ask(server, path, Cookie="longpole=wrong")[0].status == 404


def status_of(server, path=b"/", cookie=b"longpole=x"):
    """Send bytes that no well-behaved client sends; return the status of the answer."""
    host = f"127.0.0.1:{server.server_port}".encode()
    lines = [b"GET " + path + b" HTTP/1.1", b"Host: " + host, b"Cookie: " + cookie, b"", b""]
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        connection.sendall(b"\r\n".join(lines))
        return connection.recv(100).split()[1:2]


def test_a_wrong_guess_of_any_bytes_leaves_the_token_as_it_was(server):
    for guess in ("é".encode(), b"\xff\xfe", b"\xc3", server.token.encode() + b"\xff", b""):
        assert status_of(server, b"/open/" + guess) == [b"404"]
    assert ask(server, f"/open/{server.token}")[0].status == 303


@pytest.mark.parametrize(
    "cookie", ["longpole=é".encode(), b"longpole=\xff", b"long pole=;=", b"\xff"]
)
def test_a_cookie_of_any_bytes_is_only_wrong(server, cookie, capfd):
    assert status_of(server, cookie=cookie) == [b"404"]
    assert capfd.readouterr().err == ""


def test_the_token_opens_for_one_of_many_that_ask_at_once(server):
    path = f"/open/{server.token}"
    with ThreadPoolExecutor(8) as pool:
        found = sorted(pool.map(lambda _: ask(server, path)[0].status, range(8)))
    assert found == [303, *[404] * 7]


def test_another_host_name_is_refused(server):
    cookie = opened(server)
    assert ask(server, "/", Cookie=cookie, Host="attacker.example")[0].status == 403


def test_perfetto_alone_may_take_the_archive(server):
    assert server.server_address[0] == "127.0.0.1"
    path = server.archive_address.removeprefix(server.address)
    response, body = ask(server, path)
    assert response.getheader("Access-Control-Allow-Origin") == "https://ui.perfetto.dev"
    assert len(zipfile.ZipFile(BytesIO(body)).namelist()) == 2
    assert perfetto_link(server).startswith(
        "https://ui.perfetto.dev/#!/?url=http%3A%2F%2F127.0.0.1"
    )
    assert b"ui.perfetto.dev" in ask(server, "/", Cookie=opened(server))[1]


def test_a_trace_that_is_not_there_is_said(tmp_path):
    assert program.run(["view", str(tmp_path / "none.json"), "--no-browser"]) == 3

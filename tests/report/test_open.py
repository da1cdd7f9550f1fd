"""The server of `longpole report --open` answers only the holder of the token."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import webbrowser
import zipfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest

import longpole
from longpole.cli import program
from longpole.cli.ask.windows import Asked
from longpole.cli.report import _add_trace
from longpole.cli.report.page import report_page
from longpole.cli.report.server import Server, perfetto_link
from longpole.testing import TraceBuilder


@pytest.fixture
def server(tmp_path):
    trace = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(0, 5), work=(6, 90))
    path = trace.write(tmp_path / "trace.json")
    named = [(str(path), longpole.read_trace(path, args="default"))]
    with Server() as found:
        _add_trace(found, named, Asked())
        found.show(report_page(named, Asked()))
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


@pytest.fixture
def opened_at(monkeypatch):
    """End the server at once, as Ctrl-C does; list the addresses that the browser is given."""
    found: list[str] = []

    def interrupted(_server):
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", interrupted)
    monkeypatch.setattr(webbrowser, "open", found.append)
    return found


def test_the_browser_is_given_the_address_that_is_printed(tmp_path, opened_at, capsys):
    path = str(TraceBuilder().kernel("gemm", (0, 5)).write(tmp_path / "trace.json"))
    assert program.run(["report", path, "--open"]) == 0
    printed = capsys.readouterr()
    [address] = opened_at
    assert printed.err == f"{address}  (works once; Ctrl-C ends)\n"
    assert printed.out == ""
    assert [*tmp_path.iterdir()] == [tmp_path / "trace.json"]


def test_a_port_is_for_another_machine_whose_browser_opens_it(tmp_path, opened_at, capsys):
    path = str(TraceBuilder().kernel("gemm", (0, 5)).write(tmp_path / "trace.json"))
    assert program.run(["report", path, "--open", "--port", "0", "--json"]) == 0
    printed = capsys.readouterr()
    assert opened_at == []
    data = json.loads(printed.out)["data"]
    assert printed.err == f"{data['address']}  (works once; Ctrl-C ends)\n"
    assert data["output"] is None


def test_a_page_that_is_shown_can_be_kept(tmp_path, opened_at, capsys):
    path = str(TraceBuilder().kernel("gemm", (0, 5)).write(tmp_path / "trace.json"))
    output = tmp_path / "report.html"
    assert program.run(["report", path, "--open", "-o", str(output)]) == 0
    assert "report.html" in capsys.readouterr().out
    assert len(opened_at) == 1
    assert "gemm" in output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give -o FILE, or --open to show the page"),
        (["-o", "page.html", "--port", "80"], "--port needs --open"),
        (["-o", "step.svg", "--open"], "--open shows a page, not a picture"),
    ],
)
def test_options_without_effect_are_refused(tmp_path, options, message, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TraceBuilder().kernel("gemm", (0, 5)).write(tmp_path / "trace.json")
    assert program.run(["report", "trace.json", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_trace_that_is_not_there_is_said(tmp_path):
    assert program.run(["report", str(tmp_path / "none.json"), "--open"]) == 3

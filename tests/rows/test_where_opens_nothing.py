"""A condition opens no file and no connection, whatever it asks for, however it is given."""

import json
import shutil
import socket
import subprocess
import sys

import pytest

from longpole.testing import TraceBuilder

ATTACKS = [
    "name IN (SELECT column_1 FROM read_csv('{file}'))",
    "name IN (SELECT x FROM read_parquet('{address}'))",
    "EXISTS (SELECT * FROM read_ipc('{address}'))",
    "stream = (SELECT count(*) FROM read_json('{file}'))",
    "read_csv('{file}') IS NULL",
    "name LIKE (SELECT 1 FROM scan_csv('{file}'))",
    'name IN (SELECT * FROM "{file}")',
    "name IN (TABLE '{file}')",
    "true) FROM read_csv('{file}') --",
    "name = ANY(ARRAY(SELECT 1 FROM delta_scan('{address}')))",
    "CASE WHEN (SELECT 1 FROM read_csv('{file}')) = 1 THEN true END",
    "CAST(name AS TEXT) = 'x' UNION SELECT * FROM read_csv('{file}')",
]

# Asks by each way that text becomes a condition; prints what was opened, and what was answered.
ASKING = """
import json, sys
import longpole, polars
from longpole.cli import program
from longpole.cli.mcp import tools
from pathlib import Path
folder, conditions = Path(sys.argv[1]), json.loads(sys.argv[2])
seen, told = [], []
def watch(event, arguments):
    if event == "open" and "probe" in str(arguments[0]):
        seen.append(str(arguments[0]))
    if event.startswith(("socket.connect", "socket.getaddrinfo", "subprocess", "os.system")):
        seen.append(event)
sys.addaudithook(watch)
for where in conditions:
    asked = {"trace": "trace.json", "table": "kernels", "where": where}
    told.append(tools.call("table", asked, [folder])["error"]["message"])
    for table in ("kernels", "events", "steps"):
        try:
            getattr(longpole, table)(str(folder / "trace.json"), where=where)
        except ValueError as error:
            told.append(str(error))
    of_events = ("segments", "--by", "event", f"--where={where}")
    code = program.run(["table", str(folder / "trace.json"), *of_events])
    told.append(f"exit {code}")
    out = folder / "out.csv"
    code = program.run(["convert", str(folder / "trace.json"), f"--where={where}", "-o", str(out)])
    told.append(f"exit {code}, {out.exists()}")
print(json.dumps([seen, told]))
"""
POLARS = "import sys, polars; polars.sql_expr(sys.argv[1])"


@pytest.fixture
def folder(tmp_path):
    builder = TraceBuilder().step(1, (0, 100)).launch("gemm", call=(0, 1), work=(1, 30))
    builder.call("cudaDeviceSynchronize", (2, 99)).write(tmp_path / "trace.json")
    (tmp_path / "probe.csv").write_text("column_1\nsecret\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


def of_listener(listener):
    return f"http://127.0.0.1:{listener.getsockname()[1]}/x.parquet"


def conditions(file, address):
    return [attack.format(file=file, address=address) for attack in ATTACKS]


def asked(folder, attacks, *, tool=()):
    command = [*tool, sys.executable, "-B", "-c", ASKING, str(folder), json.dumps(attacks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_no_file_is_opened_and_nobody_is_called(folder, listener):
    attacks = conditions(folder / "probe.csv", of_listener(listener))
    seen, answers = asked(folder, attacks)
    assert seen == []
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert len(answers) == 6 * len(ATTACKS)
    for answer in answers:
        assert answer.startswith(("invalid condition ", "exit 2"))
        assert "secret" not in answer
        assert "True" not in answer.removeprefix("invalid condition ")


def test_the_answer_does_not_tell_whether_a_file_exists(folder, listener):
    address = of_listener(listener)
    _, there = asked(folder, conditions(folder / "probe.csv", address))
    _, gone = asked(folder, conditions(folder / "prope.csv", address))
    assert there == [answer.replace("prope", "probe") for answer in gone]


@pytest.fixture
def strace(tmp_path):
    """Return the words that trace the system calls of a program, and the file they go to."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    log = tmp_path / "calls.log"
    words = ["strace", "-f", "-s", "400", "-e", "trace=open,openat,openat2,connect"]
    words += ["-o", str(log)]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system does not let strace trace programs")
    return words, log


def calls(log):
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if "probe.csv" in line or "AF_INET" in line]


def test_the_kernel_sees_no_open_and_no_connect(folder, listener, strace):
    words, log = strace
    asked(folder, conditions(folder / "probe.csv", of_listener(listener)), tool=words)
    assert "trace.json" in log.read_text(encoding="utf-8", errors="replace")
    assert calls(log) == []


def test_strace_sees_what_polars_opens(folder, listener, strace):
    words, log = strace
    attack = conditions(folder / "probe.csv", of_listener(listener))[0]
    command = [*words, sys.executable, "-c", POLARS, attack]
    subprocess.run(command, capture_output=True, check=False)
    assert calls(log)

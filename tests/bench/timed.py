"""`longpole bench time`, called in this process, in few and short runs."""

import json

from longpole.cli.program import run


def time(*arguments, processes=2, budget="0.1"):
    """Return the exit code. Arguments after `--` have to come last."""
    limits = ["--runs", str(processes), "--budget", budget]
    return run(["bench", "time", *limits, *arguments])


def answered(capsys, *arguments, **limits):
    """Return the exit code, and the data of the answer or what was said in its place."""
    code = time("--json", *arguments, **limits)
    said = capsys.readouterr()
    data = json.loads(said.out)["data"] if said.out else None
    return code, said.err if data is None else data

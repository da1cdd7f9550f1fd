"""Runs the jobs of a spec file with the runner, and prints one JSON object about them.

    runner_adapter.py SPEC

Exit status 130 after Ctrl-C, 143 after SIGTERM, 1 when the results cannot be written.
"""

import json
import signal
import sys
from pathlib import Path

from longpole import LongpoleError
from longpole.bench import Job, Policy, Runner
from longpole.devices import unlisted


def main(path):
    spec = json.loads(Path(path).read_text())
    policy = Policy(timeout_s=spec["timeout_s"], grace_s=spec["grace_s"], retries=spec["retries"])
    devices = {unlisted(name): name for name in spec["devices"]}
    jobs = [Job(each["argv"], key=each["id"], env=each["env"]) for each in spec["jobs"]]
    with Runner(
        list(devices),
        results=spec["results"],
        resume=spec["resume"],
        policy=policy,
        lock_folder=Path(spec["lock_dir"]),
    ) as runner:
        records = runner.run(jobs)
    names = {device.uuid: name for device, name in devices.items()}
    return {
        "jobs": [reply(record, names) for record in records],
        "quarantined": {names[uuid]: why for uuid, why in runner.quarantined.items()},
        "error": None,
    }


def reply(record, names):
    return {
        "id": record.id,
        "outcome": record.outcome,
        "exit_code": record.exit_code,
        "signal": record.signal,
        "results": [result(each) for each in record.results],
        "best": result(record.best) if record.best else None,
        "unparsed": record.unparsed,
        "device": names.get(record.device),
        "attempts": record.attempt,
        "message": record.message,
        "seconds": record.seconds,
    }


def result(measurement):
    return {
        "op": measurement.name,
        "time": float(measurement.original["time"]),
        "ws": measurement.workspace_bytes,
    }


def terminate(*_):
    sys.exit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, terminate)
    try:
        sys.stdout.write(json.dumps(main(sys.argv[1])) + "\n")
    except KeyboardInterrupt:
        sys.exit(130)
    except (LongpoleError, OSError) as error:
        sys.exit(f"error: {error}")

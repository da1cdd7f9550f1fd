"""Execution traces of simulated runs, as PyTorch would write them with the Kineto trace."""

from __future__ import annotations

import json

OPERATORS = {"cpu_op", "user_annotation"}


def execution_trace_of(document, *, schema="1.1.1-chakra.0.0.4"):
    """Make an execution trace from the nesting of operators on each thread."""
    threads = {}
    for event in document["traceEvents"]:
        if event.get("cat") in OPERATORS and event.get("ph") == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    nodes = [node(1, "[pytorch|profiler|execution_trace|process]", 1, 0, 0)]
    for tid, events in enumerate(threads.values(), 1):
        root = len(nodes) + 1
        nodes.append(node(root, "[pytorch|profiler|execution_trace|thread]", 1, 0, tid))
        open_ = []
        for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
            while open_ and open_[-1][0] < event["ts"] + event["dur"]:
                open_.pop()
            around = open_[-1][1] if open_ else root
            number = event["args"]["Record function id"]
            nodes.append(node(len(nodes) + 1, event["name"], around, number, tid))
            open_.append((event["ts"] + event["dur"], len(nodes)))
    return {"schema": schema, "pid": 1, "time": "", "start_ts": 1, "nodes": nodes, "finish_ts": 2}


def node(id_, name, parent, rf_id, tid):
    numbers = {"rf_id": rf_id, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": tid, "fw_tid": 0}
    attributes = [{"name": key, "type": "uint64", "value": n} for key, n in numbers.items()]
    lists = {"values": [], "shapes": [], "types": [], "strides": []}
    attributes.append({"name": "op_schema", "type": "string", "value": ""})
    return {
        "id": id_,
        "name": name,
        "ctrl_deps": parent,
        "inputs": lists,
        "outputs": lists,
        "attrs": attributes,
    }


def simulated_pair(run, folder):
    """Write a run; give the Kineto document, and the rows of the file by record of the run."""
    order = run.write(folder / "trace.json")
    document = json.loads((folder / "trace.json").read_bytes())
    return document, {record: row for row, record in enumerate(order)}

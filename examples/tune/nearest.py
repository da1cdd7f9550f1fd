"""Find the nearest of many points for each query, one chunk of queries after the other.

`python nearest.py trace.json.gz` records ten steps; CHUNK sets how many queries a chunk has.
"""

import os
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

CHUNK = int(os.environ.get("CHUNK", "512"))

torch.set_num_threads(1)
generator = torch.Generator().manual_seed(0)
queries = torch.rand(1024, 32, generator=generator)
points = torch.rand(1000, 32, generator=generator)
# Memory that every chunk uses again: new memory costs a page fault for each 4 KiB.
memory = torch.empty(0)


def nearest(chunk: int = CHUNK) -> torch.Tensor:
    """Return the index of the nearest point to each query."""
    found = []
    for part in queries.split(chunk):
        difference = torch.sub(part[:, None, :], points, out=memory.resize_(len(part), 1000, 32))
        found.append(difference.square_().sum(-1).argmin(1))
    return torch.cat(found)


def right() -> torch.Tensor:
    """Compute the same in another way, in double precision."""
    return torch.cdist(queries.double(), points.double()).argmin(1)


def record(path: str) -> None:
    """Record ten steps."""
    nearest()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for step in range(10):
            with record_function(f"ProfilerStep#{step}"):
                nearest()
    profiler.export_chrome_trace(path)


if __name__ == "__main__":
    record(sys.argv[1])

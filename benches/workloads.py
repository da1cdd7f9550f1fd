"""Make the inputs of examples and benches: traces of simulated programs.

python benches/workloads.py training --seed 0 --steps 4 -o out.json.gz
python benches/workloads.py training --megabytes 1000 -o large.json
python benches/workloads.py random --seed 17 -o odd.json --truth odd.truth.json
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # benches are run as scripts

from oracles.simulator import write_large
from oracles.simulator.large import main

__all__ = ["main", "write_large"]

if __name__ == "__main__":
    sys.exit(main())

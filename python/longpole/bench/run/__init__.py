"""Run jobs on devices, one at a time on each.

`Runner` distributes `Job`s over devices and returns a record for each attempt. One guard process
per device enforces time limits and ends every process that a job leaves running.
"""

from longpole.bench.run.job import Job, Plan, Policy, plan_path, read_jobs
from longpole.bench.run.runner import Runner, Status

__all__ = ["Job", "Plan", "Policy", "Runner", "Status", "plan_path", "read_jobs"]

"""Run jobs on devices, one at a time on each.

`Runner` distributes `Job`s over devices and returns a record for each attempt. One guard process
per device enforces time limits and ends every process that a job leaves running.
"""

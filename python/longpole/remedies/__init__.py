"""What to change in a program, and the resulting gain.

A remedy is one file of this folder and one line of `catalogue.CATALOGUE`, whose order decides
between equal gains: how to recognise it in a trace, the changes of the dependency graph that model
it, and its advice. User packages add their own with an entry point of the group `longpole.remedies`
that refers to a `Remedy`.

`find` asks `Facts` (`facts.py`) what the trace shows, and returns a `Found` (`model.py`) for each
place. These queries suffice for most remedies:

- `kernels`, `copies`, `launched_in(time_ranges)`: activities, which count to the window that
  launched them, with the `call` and the operators around it. Memsets are among the activities of
  `launched_in` only.
- `operators(prefix)`, `annotations(prefix)`, `calls(role)`, `calls_named(prefix)`: time of threads,
  which counts to the window in which it begins.
- `around(event)`, `names_in(time_ranges)`: what encloses an event, and what lies in a time range.
- `gaps(least_ns)`, `waits`: time in which a thread runs nothing, and calls that waited for a GPU.
- `name(event)`, `place(event)`, `number(event, key)`, `text(event, key)`: what is recorded of an
  event. Arguments are read if they are in `engine/arguments.py`, or link events.
- `called(operator)`, `work(operator)`: recorded inputs, as `called(operator).tensor(0).shape`, and
  the FLOPs and bytes they mean, None without recorded shapes; `peaks`: what the device reaches.
- `once(function)`, `is_worth(time_ns)`, `per_window(number)`: a result shared by remedies, whether
  a time is long enough to matter, and a mean for the evidence.

If there are many windows that take about the same time, facts and gains are those of a few
consecutive ones; if a window takes much longer, for example to compile code, they are those of all.
Events in fewer than half of the windows are usually not worth a change. `in_launch_order(works)`
returns what each thread launched, in order.

Changes are those of `longpole.engine.critical_path.changes`: `Scale`, `Drop`, `Replace` (by a
computed time), `Insert` (what the mechanism costs) and `RemoveWait`, which apply in their order:
`Scale` after `Insert` also scales the added time. A remedy that drops kernels should also drop the
delays before them (`Drop(kind="kernel_delay")`), and the time of threads that launched them.
`Remedy.side` is the side that loses the most time; a change of one side never gains more than the
whole side.
"""

from longpole.remedies.facts import Facts
from longpole.remedies.model import Found, Remedy

__all__ = ["Facts", "Found", "Remedy"]

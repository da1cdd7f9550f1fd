"""The answer about an inference server: how it spends its iterations, by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longpole.words.data import Data, Row

Mark = Literal["annotation", "python_function", "graph_launch"]


class IterationKind(Row):
    """The iterations of one kind. Times are medians over the iterations that have them."""

    kind: str | None
    """`decode`, `prefill` or `mixed`; null if unknown."""
    count: int
    requests: float | None
    """Median number of requests of an iteration; the next two fields are medians as well."""
    prefill_tokens: float | None
    decode_tokens: float | None
    most_requests: int | None
    """Number of requests of the largest batch."""
    length_ns: float | None
    """Time from the completion of the previous iteration to its own."""
    total_ns: int
    """Sum of the lengths; for a single iteration without one, the longer of its host and device
    time."""
    host_ns: float | None
    before_launch_ns: float | None
    blocked_ns: float | None
    launch_delay_ns: float | None
    replay_ns: float | None
    gap_ns: float | None
    device_ns: float | None
    sampling_ns: float | None
    detokenizing_ns: float | None
    n_graph_launches: float | None
    device_share: float | None
    """Share of the total length in which the device ran what the iterations launched."""
    scheduler_share: float | None
    """Share in which the device waited for a launch while the host was between iterations."""
    launch_share: float | None
    """Share in which the device waited for a launch while the host was inside an iteration."""
    prefill_tokens_per_second: float | None
    decode_tokens_per_second: float | None
    """Tokens of the iterations with a known length, divided by their length."""


class SlowIteration(Row):
    """An iteration that took much longer than the median of its kind."""

    iteration: int
    event: int
    kind: str | None
    start_ns: int
    length_ns: int
    median_ns: int
    """Length of the median iteration of its kind."""
    why: str
    """Differences from the median iteration, largest first."""


class IterationKernel(Row):
    """All GPU activities with the same name in the iterations of the kind that takes most time."""

    operator: str | None
    """Captured operator for graph nodes, else the launching operator, if known."""
    name: str
    count: int
    duration_ns: int
    share: float
    """Share of the time of all GPU activities in the iterations of this kind."""


class HostWork(Row):
    """All events of the host with the same name in some spans of a thread."""

    name: str | None
    duration_ns: int
    """Their time in the spans, with all that is nested in them."""
    share: float
    """Share of the spans."""


@dataclass(frozen=True, slots=True)
class Serving(Data):
    """The iterations of an inference server, by kind."""

    sentence: str
    """A summary for the person who operates the server."""
    servers: tuple[str, ...]
    """Servers, as recognised by the names of the marks."""
    mark: Mark | None
    """Kind of event that marks the iterations; None without marks."""
    n_iterations: int
    kinds: tuple[IterationKind, ...]
    """Kinds of iterations, sorted by time; the sentence is about the first."""
    slowest: tuple[SlowIteration, ...]
    kernels: tuple[IterationKernel, ...]
    """Kernels of the kind that takes most time, longest first."""
    n_kernels: int
    """Number of kernels, of which `kernels` may list the first."""
    time_per_output_token_ns: float | None = None
    """Median time from the completion of an iteration that decodes to that of the next one, with
    the prefill steps between them; null if marks do not show the tokens, or if requests decode
    several tokens in an iteration."""
    longest_output_token_ns: int | None = None
    """The longest of these times."""
    n_delayed: int = 0
    """Number of these times with a prefill step, or a mixed batch, in them."""
    time_to_first_token_ns: float | None = None
    """Median time from the start of an iteration with prompts to its completion, which is the least
    possible time to the first token: the marks show neither the time in the queue nor other chunks
    of a prompt. Null if marks do not show the tokens of prompts."""
    between: tuple[HostWork, ...] = ()
    """What the host does between the iterations of the kind that takes most time; empty if nothing
    is recorded there."""
    before_launch: tuple[HostWork, ...] = ()
    """What it does in these iterations up to the launch."""
    planned_output_token_ns: tuple[int, int] | None = None
    """Least and most time per output token after all lines of the plan; null if the plan is not
    about steps in which each request decodes a token, or if prefill steps between them matter."""

    def __str__(self) -> str:
        return self.sentence

//! One job, from its start to the end of the last process of its tree.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, Signal, WaitStatus};

use crate::outbox::Outbox;
use crate::tree;
use crate::wire::{Event, Order, Report};

/// How long a process may survive SIGKILL before it counts as stuck in the kernel.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// Interval of checks while waiting for processes that are not direct children.
const TREE_TICK: Duration = Duration::from_millis(5);

/// Interval of reaping orphans while the job runs.
const QUIET_TICK: Duration = Duration::from_secs(1);

/// Maximum number of chunks read after the end: more than any pipe holds, but bounded.
const LAST_CHUNKS: usize = 64;

/// A started job.
#[derive(Debug)]
pub(crate) struct Job {
    number: u64,
    pid: Pid,
    handle: Option<OwnedFd>,
    streams: [Stream; 2],
    started: Instant,
    grace: Duration,
    drain: Duration,
    phase: Phase,
    status: Option<WaitStatus>,
    report: Report,
}

/// What the guard is waiting for.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The end of the job's own process.
    Running { deadline: Option<Instant> },
    /// The job has ended: waits for the end of its output and of its remaining processes.
    Draining { until: Instant },
    /// SIGTERM was sent: waits for the end of the tree.
    Terminating { kill_at: Instant },
    /// SIGKILL is sent repeatedly: waits for the end of the tree.
    Killing { give_up_at: Instant },
}

/// One of the two output pipes of a job.
#[derive(Debug)]
struct Stream {
    event: Event,
    pipe: Option<PipeReader>,
}

impl Job {
    /// Starts a job in a separate process group, without input.
    pub(crate) fn start(order: &Order) -> io::Result<Self> {
        let (output, output_end) = Stream::open(Event::Output)?;
        let (error, error_end) = Stream::open(Event::ErrorOutput)?;
        let started = Instant::now();
        let pid = spawn(order, output_end, error_end)?;
        Ok(Self {
            number: order.number,
            pid,
            handle: tree::handle(pid),
            streams: [output, error],
            started,
            grace: order.grace,
            drain: order.drain,
            phase: Phase::Running { deadline: order.limit.map(|limit| started + limit) },
            status: None,
            report: Report::default(),
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the file descriptors to wait on, besides the clock.
    pub(crate) fn sources(&self, reading: bool) -> impl Iterator<Item = BorrowedFd<'_>> {
        let handle = self.handle.as_ref().filter(|_| self.status.is_none()).map(AsFd::as_fd);
        let pipes = self.streams.iter().filter_map(|stream| stream.pipe.as_ref().map(AsFd::as_fd));
        handle.into_iter().chain(pipes.filter(move |_| reading))
    }

    /// Returns the time until the next check if nothing happens.
    pub(crate) fn next_look(&self, now: Instant) -> Duration {
        let tick = match self.phase {
            Phase::Running { .. } if self.handle.is_some() => QUIET_TICK,
            _ => TREE_TICK,
        };
        let deadline = match self.phase {
            Phase::Running { deadline } => deadline,
            Phase::Draining { until: at }
            | Phase::Terminating { kill_at: at }
            | Phase::Killing { give_up_at: at } => Some(at),
        };
        deadline.map_or(tick, |at| at.saturating_duration_since(now).min(tick))
    }

    /// Passes on the output of the job, a chunk of each stream.
    pub(crate) fn read_output(&mut self, outbox: &mut Outbox) {
        for stream in &mut self.streams {
            if outbox.has_room() {
                stream.read_chunk(outbox);
            }
        }
    }

    /// Requests the end of the tree: SIGTERM now, SIGKILL after `grace`.
    pub(crate) fn stop(&mut self, why: &'static str, grace: Duration) {
        if matches!(self.phase, Phase::Running { .. } | Phase::Draining { .. }) {
            self.report.stopped = Some(why);
            self.phase = Phase::Terminating { kill_at: Instant::now() + grace };
            tree::signal_all(self.pid, Signal::TERM);
        }
    }

    /// Returns the grace period of the job.
    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    /// Advances to the next phase if it is time. Returns the report when everything has ended.
    pub(crate) fn advance(&mut self, outbox: &mut Outbox) -> Option<Report> {
        let any_left = self.reap();
        let now = Instant::now();
        let is_over = match self.phase {
            Phase::Running { .. } if self.status.is_some() => {
                self.phase = Phase::Draining { until: now + self.drain };
                return self.advance(outbox);
            }
            Phase::Running { deadline } => {
                if deadline.is_some_and(|at| now >= at) {
                    self.stop("limit", self.grace);
                }
                false
            }
            Phase::Draining { until } => self.drained(until, now, any_left),
            Phase::Terminating { kill_at } => {
                if any_left && now >= kill_at {
                    self.report.forced = true;
                    self.kill(now);
                }
                !any_left
            }
            Phase::Killing { give_up_at } => self.killed(give_up_at, now, any_left),
        };
        is_over.then(|| self.finish(outbox))
    }

    /// Whether nothing is left of the job. Processes that outlive the time limit are killed.
    fn drained(&mut self, until: Instant, now: Instant, any_left: bool) -> bool {
        let is_silent = self.streams.iter().all(|stream| stream.pipe.is_none());
        let is_over = !any_left && (is_silent || now >= until);
        if !is_over && now >= until {
            self.report.strays = tree::descendants();
            self.kill(now);
        }
        is_over
    }

    /// Whether nothing is left of the job, or the remaining processes cannot be killed.
    fn killed(&mut self, give_up_at: Instant, now: Instant, any_left: bool) -> bool {
        if !any_left {
            return true;
        }
        if now >= give_up_at {
            self.report.unkillable = tree::descendants();
            return true;
        }
        tree::signal_all(self.pid, Signal::KILL);
        false
    }

    fn kill(&mut self, now: Instant) {
        self.phase = Phase::Killing { give_up_at: now + GIVE_UP_AFTER };
        tree::signal_all(self.pid, Signal::KILL);
    }

    fn reap(&mut self) -> bool {
        let reaped = tree::reap(self.pid);
        if let Some(status) = reaped.status {
            self.report.wall = self.started.elapsed();
            self.status = Some(status);
        }
        reaped.any_left
    }

    /// Reads the rest of the pipes and creates the report.
    fn finish(&mut self, outbox: &mut Outbox) -> Report {
        for stream in &mut self.streams {
            (0..LAST_CHUNKS).take_while(|_| stream.read_chunk(outbox)).for_each(drop);
        }
        self.report.exit_code = self.status.and_then(WaitStatus::exit_status);
        self.report.signal = self.status.and_then(WaitStatus::terminating_signal);
        std::mem::take(&mut self.report)
    }
}

impl Stream {
    fn open(event: Event) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        ioctl_fionbio(&reader, true)?;
        Ok((Self { event, pipe: Some(reader) }, writer))
    }

    /// Passes on one chunk. Returns whether there may be more.
    fn read_chunk(&mut self, outbox: &mut Outbox) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        match outbox.receive(self.event, pipe.as_fd()) {
            Ok(count) if count > 0 => true,
            Err(Errno::AGAIN) => false,
            Err(Errno::INTR) => true,
            Ok(_) | Err(_) => {
                self.pipe = None;
                false
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "starting processes is what the guard is for")]
fn spawn(order: &Order, output: PipeWriter, error: PipeWriter) -> io::Result<Pid> {
    let mut command = Command::new(&order.arguments[0]);
    command.args(&order.arguments[1..]).env_clear().envs(order.environment.iter().cloned());
    command.process_group(0).stdin(Stdio::null()).stdout(output).stderr(error);
    if let Some(folder) = &order.folder {
        command.current_dir(folder);
    }
    let child = command.spawn()?; // dropped without harm: `tree::reap` waits for it
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(pid.expect("a process number is a positive pid_t"))
}

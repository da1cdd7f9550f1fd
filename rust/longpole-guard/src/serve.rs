//! The main loop of the guard: waits, reads requests from the runner, manages the job.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read};

use crate::job::Job;
use crate::outbox::Outbox;
use crate::tree;
use crate::wire::{Event, Inbox, Order, Request};

/// Maximum grace period of a job after its runner has died.
const GRACE_WITHOUT_RUNNER: Duration = Duration::from_secs(1);

/// Runs the jobs requested on `control`, and reports about them on `events`.
///
/// Returns when the runner has closed its end of `control` or has died. By then, everything that
/// the last job started has been killed. The process must have no other children, and its other
/// threads must not fork.
///
/// # Errors
///
/// Returns an error for an invalid request, or if basic system calls fail (poll, non-blocking
/// pipes). The job is also ended in these cases.
pub fn serve(control: BorrowedFd<'_>, events: BorrowedFd<'_>) -> io::Result<()> {
    tree::adopt_orphans()?;
    ioctl_fionbio(control, true)?;
    ioctl_fionbio(events, true)?;
    let mut guard = Guard {
        control,
        events,
        runner: rustix::process::getppid().and_then(tree::handle),
        inbox: Inbox::default(),
        outbox: Outbox::default(),
        job: None,
    };
    let outcome = guard.serve();
    guard.end_alone();
    outcome
}

struct Guard<'a> {
    control: BorrowedFd<'a>,
    events: BorrowedFd<'a>,
    runner: Option<OwnedFd>,
    inbox: Inbox,
    outbox: Outbox,
    job: Option<Job>,
}

/// Whether the runner is still there.
#[derive(PartialEq, Eq)]
enum Runner {
    Alive,
    Gone,
}

impl Guard<'_> {
    fn serve(&mut self) -> io::Result<()> {
        while self.wait()? == Runner::Alive && self.listen()? == Runner::Alive {
            self.look_after_job();
            if self.outbox.flush(self.events).is_err() {
                break; // nobody reads any more
            }
        }
        Ok(())
    }

    /// Waits until something happens or the next check is due.
    fn wait(&self) -> io::Result<Runner> {
        let mut sources = vec![PollFd::from_borrowed_fd(self.control, PollFlags::IN)];
        sources.extend(self.runner.iter().map(|runner| PollFd::new(runner, PollFlags::IN)));
        if !self.outbox.is_empty() {
            sources.push(PollFd::from_borrowed_fd(self.events, PollFlags::OUT));
        }
        if let Some(job) = &self.job {
            let of_job = job.sources(self.outbox.has_room());
            sources.extend(of_job.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)));
        }
        let timeout = self.job.as_ref().map(|job| timespec(job.next_look(Instant::now())));
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let gone = self.runner.is_some() && !sources[1].revents().is_empty();
        Ok(if gone { Runner::Gone } else { Runner::Alive })
    }

    fn listen(&mut self) -> io::Result<Runner> {
        let mut bytes = [0; 16 << 10];
        loop {
            match read(self.control, &mut bytes) {
                Ok(0) => return Ok(Runner::Gone),
                Ok(count) => self.inbox.extend(&bytes[..count]),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        while let Some(request) = self.inbox.next()? {
            self.answer(request);
        }
        Ok(Runner::Alive)
    }

    fn answer(&mut self, request: Request) {
        match (request, &mut self.job) {
            (Request::Run(order), None) => self.start(&order),
            (Request::Run(_), Some(_)) => self.refuse(&Errno::BUSY.into()),
            (Request::Cancel(number), Some(job)) if job.number() == number => {
                job.stop("cancel", job.grace());
            }
            (Request::Cancel(_), _) => {} // it has ended in the meantime
        }
    }

    fn start(&mut self, order: &Order) {
        match Job::start(order) {
            Ok(job) => {
                self.outbox.push(Event::Started, format!("{}\0", job.pid()).as_bytes());
                self.job = Some(job);
            }
            Err(error) => self.refuse(&error),
        }
    }

    fn refuse(&mut self, error: &io::Error) {
        let number = error.raw_os_error().unwrap_or_default();
        self.outbox.push(Event::Failed, format!("{number}\0{error}\0").as_bytes());
    }

    fn look_after_job(&mut self) {
        let Some(job) = &mut self.job else { return };
        job.read_output(&mut self.outbox);
        if let Some(report) = job.advance(&mut self.outbox) {
            self.outbox.push(Event::Ended, &report.to_body());
            self.job = None;
        }
    }

    /// Ends the job after the runner has gone.
    fn end_alone(&mut self) {
        let Some(mut job) = self.job.take() else { return };
        job.stop("cancel", job.grace().min(GRACE_WITHOUT_RUNNER));
        loop {
            let mut nobody = Outbox::default();
            job.read_output(&mut nobody);
            if job.advance(&mut nobody).is_some() {
                return;
            }
            std::thread::sleep(job.next_look(Instant::now()));
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    // Rounded up, because a wait that ends just before its time would spin.
    Timespec::try_from(duration + Duration::from_micros(50)).unwrap_or_default()
}

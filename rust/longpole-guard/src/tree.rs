//! The processes that a job started, including those that left its group.

use std::fmt;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait,
};

/// A process, by id and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: Pid,
    /// The name, as truncated by the kernel.
    pub name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.name)
    }
}

/// The result of [`reap`].
pub(crate) struct Reaped {
    /// How the job's own process ended, if it just did.
    pub(crate) status: Option<WaitStatus>,
    /// Whether any process of the tree remains.
    pub(crate) any_left: bool,
}

/// Makes every orphan among the descendants of this process its child.
pub(crate) fn adopt_orphans() -> rustix::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Returns a descriptor to poll for the end of a process, if the kernel supports it (Linux 5.3).
#[cfg(target_os = "linux")]
pub(crate) fn handle(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

/// Not available on this system; the clock is used instead.
#[cfg(not(target_os = "linux"))]
pub(crate) fn handle(_pid: Pid) -> Option<OwnedFd> {
    None
}

/// Reaps every child that has ended. `main` is the job's own process.
pub(crate) fn reap(main: Pid) -> Reaped {
    let mut status = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, ended))) if pid == main => status = Some(ended),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Reaped { status, any_left: true },
            Err(_) => return Reaped { status, any_left: outlives_its_parents(main) },
        }
    }
}

/// Sends `signal` to the job's group and to all processes that left it.
///
/// Stopped processes are continued; otherwise they would never receive it.
pub(crate) fn signal_all(group: Pid, signal: Signal) {
    // An error means that there is no process that can or may receive the signal.
    let _ = kill_process_group(group, signal);
    let _ = kill_process_group(group, Signal::CONT);
    for process in descendants() {
        let _ = kill_process(process.pid, signal);
        let _ = kill_process(process.pid, Signal::CONT);
    }
}

/// Returns every living descendant of this process, by id.
#[cfg(target_os = "linux")]
pub(crate) fn descendants() -> Vec<Process> {
    let mut others = linux::all_processes();
    let mut found = Vec::new();
    let mut parents = vec![rustix::process::getpid()];
    while let Some(parent) = parents.pop() {
        let (children, rest) = others.into_iter().partition(|entry| entry.parent == Some(parent));
        others = rest;
        let children: Vec<linux::Entry> = children;
        parents.extend(children.iter().map(|entry| entry.process.pid));
        found.extend(children.into_iter().filter(|entry| !entry.ended).map(|entry| entry.process));
    }
    found.sort_by_key(|process| process.pid.as_raw_nonzero());
    found
}

/// They are unknown without `/proc`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn descendants() -> Vec<Process> {
    Vec::new()
}

/// Whether the group continues although this process has no child left.
///
/// Always false on Linux, where an orphan becomes a child.
fn outlives_its_parents(group: Pid) -> bool {
    !cfg!(target_os = "linux") && rustix::process::test_kill_process_group(group).is_ok()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::process::Pid;

    use super::Process;

    /// An entry of the process table.
    pub(super) struct Entry {
        pub(super) process: Process,
        pub(super) parent: Option<Pid>,
        pub(super) ended: bool,
    }

    pub(super) fn all_processes() -> Vec<Entry> {
        let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
        folder
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter_map(|pid| parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?))
            .collect()
    }

    /// Parses `PID (NAME) STATE PARENT ...`; the name may contain spaces and parentheses.
    fn parse_stat(stat: &[u8]) -> Option<Entry> {
        let stat = String::from_utf8_lossy(stat);
        let (head, tail) = stat.rsplit_once(") ")?;
        let (pid, name) = head.split_once(" (")?;
        let mut fields = tail.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Entry {
            process: Process { pid: Pid::from_raw(pid.parse().ok()?)?, name: printable(name) },
            parent: Pid::from_raw(parent),
            ended: matches!(state, "Z" | "X"),
        })
    }

    /// Returns the name in printable form. A process chooses its name itself, so it must not break
    /// a line or a field.
    fn printable(name: &str) -> String {
        name.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_name_may_look_like_the_rest_of_the_line() {
            let entry = parse_stat(b"12 (a) Z 1 (b) S 7 12 12").unwrap();
            assert_eq!(entry.process.to_string(), "12 a) Z 1 (b");
            assert_eq!((entry.parent, entry.ended), (Pid::from_raw(7), false));
        }
    }
}

//! The guard as seen by its runner: requests in, events out, no processes left.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the guard is a process")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are not seen as tests")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A guard, and its messages about the current job.
struct Guard {
    process: Child,
}

/// All messages about one job.
#[derive(Debug, Default)]
struct Outcome {
    output: Vec<u8>,
    error: Vec<u8>,
    started: String,
    failed: Option<String>,
    ended: String,
}

impl Guard {
    fn new() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longpole-guard"));
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Self { process }
    }

    fn run(&mut self, limit_ms: &str, script: &str) -> Outcome {
        self.order(limit_ms, &["/bin/bash", "-c", script]);
        self.outcome()
    }

    fn order(&mut self, limit_ms: &str, arguments: &[&str]) {
        let count = arguments.len().to_string();
        let mut fields = vec!["1", limit_ms, "300", "200", "", &count];
        fields.extend(arguments);
        fields.push("PATH=/usr/bin:/bin");
        self.request(b'r', &fields);
    }

    fn request(&mut self, kind: u8, fields: &[&str]) {
        let body: Vec<u8> = fields.iter().flat_map(|field| field.bytes().chain([0])).collect();
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        let pipe = self.process.stdin.as_mut().unwrap();
        pipe.write_all(&[&[kind][..], &length, &body].concat()).unwrap();
    }

    fn outcome(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        loop {
            let (kind, body) = self.event();
            let text = || String::from_utf8(body.clone()).unwrap();
            match kind {
                b'o' => outcome.output.extend(&body),
                b'e' => outcome.error.extend(&body),
                b's' => outcome.started = text(),
                b'f' => outcome.failed = Some(text()),
                _ => outcome.ended = text(),
            }
            if matches!(kind, b'f' | b'x') {
                return outcome;
            }
        }
    }

    fn event(&mut self) -> (u8, Vec<u8>) {
        let pipe = self.process.stdout.as_mut().unwrap();
        let mut header = [0; 5];
        pipe.read_exact(&mut header).unwrap();
        let [kind, a, b, c, d] = header;
        let mut body = vec![0; u32::from_le_bytes([a, b, c, d]) as usize];
        pipe.read_exact(&mut body).unwrap();
        (kind, body)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

/// Whether a process is alive and not only unreaped.
fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with('Z'))
}

#[test]
fn a_job_prints_and_exits() {
    let outcome = Guard::new().run("", "echo out; echo err >&2; exit 3");
    assert_eq!((&outcome.output[..], &outcome.error[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert!(outcome.ended.contains("exit_code=3\0"), "{outcome:?}");
}

#[test]
fn jobs_follow_one_another() {
    let mut guard = Guard::new();
    for number in 0..20 {
        assert_eq!(
            guard.run("", &format!("echo {number}")).output,
            format!("{number}\n").bytes().collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_signal_is_reported() {
    assert!(Guard::new().run("", "kill -SEGV $$").ended.contains("signal=11\0"));
}

#[test]
fn a_program_that_is_not_there_fails_at_once_and_costs_nothing() {
    let mut guard = Guard::new();
    guard.order("", &["/nonexistent/profiler"]);
    assert!(guard.outcome().failed.unwrap().starts_with("2\0"));
    assert!(guard.run("", "true").ended.contains("exit_code=0\0"));
}

#[test]
fn the_limit_ends_a_tree_that_ignores_signals_and_leaves_its_group() {
    let script = "trap '' TERM; setsid bash -c 'trap \"\" TERM; echo $$; while :; do sleep 99; done' & while :; do sleep 99; done";
    let started = Instant::now();
    let outcome = Guard::new().run("200", script);
    assert!(outcome.ended.contains("stopped=limit\0forced=1\0"), "{outcome:?}");
    assert!(!alive(std::str::from_utf8(&outcome.output).unwrap()));
    assert!((500..1500).contains(&started.elapsed().as_millis()));
}

#[test]
fn a_grace_lets_a_job_clean_up() {
    let outcome =
        Guard::new().run("100", "trap 'sleep 0.1; echo clean; exit 0' TERM; sleep 99 & wait");
    assert_eq!(outcome.output, b"clean\n");
    assert!(!outcome.ended.contains("forced"), "{outcome:?}");
}

#[test]
fn a_daemon_that_keeps_the_pipe_is_named_and_killed() {
    let started = Instant::now();
    let outcome = Guard::new().run("", "setsid sleep 54321 & echo $!; sleep 0.05");
    assert!(outcome.ended.contains(" sleep\0") && outcome.ended.contains("stray="), "{outcome:?}");
    assert!(!alive(std::str::from_utf8(&outcome.output).unwrap()));
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_cancel_ends_the_job_it_names_and_no_other() {
    let mut guard = Guard::new();
    guard.order("", &["/bin/sleep", "99"]);
    guard.request(b'c', &["99"]);
    std::thread::sleep(Duration::from_millis(100));
    guard.request(b'c', &["1"]);
    assert!(guard.outcome().ended.contains("signal=15\0stopped=cancel\0"));
}

#[test]
fn a_runner_that_reads_late_loses_no_byte() {
    let mut guard = Guard::new();
    guard.order("", &["/bin/bash", "-c", "head -c 8388608 /dev/zero"]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(guard.outcome().output.len(), 8 << 20);
}

#[test]
fn a_limit_holds_while_the_runner_does_not_read() {
    let mut guard = Guard::new();
    guard.order("100", &["/bin/bash", "-c", "echo $$; yes"]);
    std::thread::sleep(Duration::from_millis(300));
    let first = guard.outcome();
    let pid = first.output.split(|&byte| byte == b'\n').next().unwrap();
    assert!(!alive(std::str::from_utf8(pid).unwrap()));
}

#[test]
fn the_tree_ends_with_the_runner() {
    let mut guard = Guard::new();
    guard.order(
        "",
        &["/bin/bash", "-c", "trap '' TERM; setsid sleep 54321 & echo $!; wait; sleep 99"],
    );
    let (_, _) = guard.event();
    let (_, pid) = guard.event();
    drop(guard); // closes the control pipe and waits for the guard
    assert!(!alive(std::str::from_utf8(&pid).unwrap()));
}

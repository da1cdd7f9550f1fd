//! Measures the cost of each step from bytes to the critical path, compared with the limits of the
//! machine: `cargo bench --bench ladder -- TRACE [REPEATS]`, with a trace as JSON, plain or gzip.
//!
//! Each step is repeated, alternating with the others, and the median is reported. CPU seconds are
//! those of all threads of the process. They drift on a shared machine, so the ratio to another
//! step of the same run is more reliable than a rate. Page faults are counted as well, because
//! zeroing pages is a tenth of the cost of reading; a step that reuses memory of an earlier one has
//! fewer of them than a process that only runs this step. To count instructions, run one step (`--
//! TRACE 1 STEP`) under `perf stat -e instructions` or `valgrind --tool=callgrind`, where
//! available.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::cast_precision_loss)] // a bench

use std::cell::RefCell;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::time::Instant;

use longpole_core::graph::{self, Graph};
use longpole_core::link::{self, Launches};
use longpole_core::path::{self, Choice, Schedule};
use longpole_core::progress::silent;
use longpole_core::read::{Arguments, Options, read_bytes};
use longpole_core::stack;
use longpole_core::tables::Tables;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let Some(trace) = arguments.first() else {
        println!("usage: cargo bench --bench ladder -- TRACE [REPEATS [STEP]]");
        return;
    };
    let repeats = arguments.get(1).map_or(5, |repeats| repeats.parse().unwrap());
    let input = Input::of(trace);
    let wanted = |name: &str| arguments.get(2).is_none_or(|step| name == step);
    let mut costs: Vec<_> =
        STEPS.iter().filter(|step| wanted(step.0)).map(|step| (step, Vec::new())).collect();
    for _ in 0..repeats {
        for ((_, run), costs) in &mut costs {
            costs.push(Cost::of(|| run(&input)));
        }
    }
    show(&input, costs.into_iter().map(|((name, _), costs)| (*name, Cost::median(&costs))));
}

/// A trace in the input form of every step.
struct Input {
    json: Vec<u8>,
    gzip: Vec<u8>,
    /// Destination for copied bytes, in memory that is already mapped.
    copy: RefCell<Vec<u8>>,
    file: File,
    tables: Tables,
    launches: Launches,
    graph: Graph,
}

/// Length of the header that the encoder writes.
const GZIP_HEADER: usize = 10;

type Step = (&'static str, fn(&Input));

const STEPS: &[Step] = &[
    ("memcpy", |input| input.copy.borrow_mut().copy_from_slice(black_box(&input.json))),
    ("read the file", |input| read_file(&input.file)),
    ("find quotes", |input| {
        black_box(memchr::memchr_iter(b'"', &input.json).count());
    }),
    ("inflate", |input| inflate(&input.gzip)),
    ("tables, ids", |input| tables(&input.json, Arguments::Ids, 1)),
    ("tables, default", |input| tables(&input.json, Arguments::Default, 1)),
    ("tables, default, 2 threads", |input| tables(&input.json, Arguments::Default, 2)),
    ("tables, default, gzip", |input| tables(&input.gzip, Arguments::Default, 1)),
    ("tables, default, gzip, 2 threads", |input| tables(&input.gzip, Arguments::Default, 2)),
    ("link", |input| drop(black_box(link::launches(&input.tables, &silent).unwrap()))),
    ("nesting", |input| drop(black_box(stack::nesting(&input.tables, &silent).unwrap()))),
    ("graph", |input| drop(black_box(graph_of(&input.tables, &input.launches)))),
    ("path", walk),
];

impl Input {
    fn of(path: &str) -> Self {
        let (mut bytes, mut json) = (Vec::new(), Vec::new());
        File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
        if bytes.starts_with(b"\x1f\x8b") {
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut json).unwrap();
        } else {
            json = bytes;
        }
        let level = flate2::Compression::default();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
        encoder.write_all(&json).unwrap();
        let tables = read_bytes(&json, &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        let graph = graph_of(&tables, &launches);
        let file = File::open(path).unwrap();
        let copy = RefCell::new(json.clone());
        Self { gzip: encoder.finish().unwrap(), copy, json, file, tables, launches, graph }
    }
}

fn read_file(mut file: &File) {
    std::io::Seek::rewind(&mut file).unwrap();
    let mut window = vec![0; 256 << 10];
    while file.read(&mut window).unwrap() > 0 {
        black_box(&window);
    }
}

/// The reader's work on compressed bytes: decompression, and its own checksum, which is faster than
/// that of `flate2`.
fn inflate(gzip: &[u8]) {
    let mut window = vec![0; 256 << 10];
    let mut decoder = flate2::read::DeflateDecoder::new(&gzip[GZIP_HEADER..]);
    let mut checksum = crc32fast::Hasher::new();
    loop {
        let length = decoder.read(&mut window).unwrap();
        if length == 0 {
            break;
        }
        checksum.update(&window[..length]);
    }
    black_box(checksum.finalize());
}

fn tables(bytes: &[u8], arguments: Arguments, threads: usize) {
    let options = Options { arguments, threads, ..Options::default() };
    black_box(read_bytes(bytes, &options).unwrap());
}

fn graph_of(tables: &Tables, launches: &Launches) -> Graph {
    graph::build(tables, launches, &tables.vocabulary.data_loading(), &silent).unwrap()
}

fn walk(input: &Input) {
    let window = path::window(&input.tables, &input.launches, &Choice::Whole, None).unwrap();
    let schedule = Schedule::observed();
    black_box(path::walk(&input.graph, &window, &schedule).segments.len());
}

/// The cost of a step.
#[derive(Clone, Copy)]
struct Cost {
    wall_s: f64,
    cpu_s: f64,
    faults: f64,
}

impl Cost {
    fn of(run: impl FnOnce()) -> Self {
        let (start, cpu_s, faults) = (Instant::now(), cpu_s(), page_faults());
        run();
        Self {
            wall_s: start.elapsed().as_secs_f64(),
            cpu_s: self::cpu_s() - cpu_s,
            faults: page_faults() - faults,
        }
    }

    fn median(costs: &[Self]) -> Self {
        let median = |part: fn(&Self) -> f64| {
            let mut values: Vec<_> = costs.iter().map(part).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        Self {
            wall_s: median(|cost| cost.wall_s),
            cpu_s: median(|cost| cost.cpu_s),
            faults: median(|cost| cost.faults),
        }
    }
}

fn cpu_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Returns the page faults of the process so far; 0 if the system does not report them.
fn page_faults() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().nth(7).and_then(|count| count.parse().ok()).unwrap_or(0.0)
}

fn show(input: &Input, costs: impl Iterator<Item = (&'static str, Cost)>) {
    let gb = input.json.len() as f64 / 1e9;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{gb:.3} GB of JSON, {} events, load {}", input.tables.n_events(), load.trim());
    println!(
        "{:34}{:>9}{:>9}{:>9}{:>11}{:>12}",
        "step", "CPU s", "wall s", "GB/CPU s", "x memcpy", "faults"
    );
    let mut limit_s = None;
    for (name, cost) in costs {
        let limit_s = *limit_s.get_or_insert(cost.cpu_s);
        println!(
            "{name:34}{:9.4}{:9.4}{:9.2}{:11.1}{:12.0}",
            cost.cpu_s,
            cost.wall_s,
            gb / cost.cpu_s,
            cost.cpu_s / limit_s,
            cost.faults
        );
    }
}

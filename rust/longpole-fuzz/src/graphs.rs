//! The graph and the path of random tables: for any threads, streams and ids, the segments of the
//! path follow one another.

use std::fmt::Write as _;

use longpole_core::path::{self, Choice, Schedule};
use longpole_core::progress::silent;
use longpole_core::read::{Options, read_bytes};
use longpole_core::{graph, link, measure, vocabulary};

/// Categories and names of events that the graph knows.
const WORDS: [(&str, &str); 16] = [
    ("cpu_op", "aten::mm"),
    ("cpu_op", "aten::add"),
    ("user_annotation", "ProfilerStep#1"),
    ("python_function", "train.py(3): step"),
    ("cuda_runtime", "cudaLaunchKernel"),
    ("cuda_runtime", "cudaMemcpyAsync"),
    ("cuda_runtime", "cudaMemcpy"),
    ("cuda_runtime", "cudaStreamSynchronize"),
    ("cuda_runtime", "cudaDeviceSynchronize"),
    ("cuda_runtime", "cudaEventRecord"),
    ("cuda_runtime", "cudaStreamWaitEvent"),
    ("cuda_runtime", "cudaGraphLaunch"),
    ("kernel", "gemm"),
    ("kernel", "ncclDevKernel_AllReduce"),
    ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"),
    ("cuda_sync", "Stream Sync"),
];
const BYTES_OF_EVENT: usize = 6;
const MOST_EVENTS: usize = 300;

/// Reads six bytes as an event: kind, place, time, duration, and two ids.
pub(crate) fn graph(bytes: &[u8]) {
    let text = document(bytes);
    let Ok(tables) = read_bytes(text.as_bytes(), &Options::default()) else { return };
    let launches = link::launches(&tables, &silent).expect("no one asks to stop");
    let built = graph::build(&tables, &launches, vocabulary::DATA_LOADING, &silent)
        .expect("the pattern is ours");
    let always = (i64::MIN, i64::MAX);
    measure::kernels_by_name(&tables, &link::Belonging::of(&tables, &launches, always, always));
    let _ = path::scope(&tables, &launches, &Choice::Usual, None);
    let Ok(window) = path::window(&tables, &launches, &Choice::Whole, None) else { return };
    let found = path::walk(&built, &window, &Schedule::observed());
    for segment in &found.segments {
        assert!(segment.end_ns >= segment.start_ns, "a segment ends before it starts: {text}");
    }
    for pair in found.segments.windows(2) {
        assert_eq!(pair[0].end_ns, pair[1].start_ns, "segments lie behind one another: {text}");
    }
}

fn document(bytes: &[u8]) -> String {
    let mut text = String::from("[");
    let mut now = 0_u32;
    for (number, event) in bytes.chunks_exact(BYTES_OF_EVENT).take(MOST_EVENTS).enumerate() {
        let (category, name) = WORDS[usize::from(event[0]) % WORDS.len()];
        let is_device = matches!(category, "kernel" | "gpu_memcpy" | "cuda_sync");
        now += u32::from(event[2] % 16);
        let (place, id) = (event[1] % 4, event[4] % 32);
        let (time_us, duration_us) = (time_us(event[2], now), duration_us(event[3]));
        let comma = if number > 0 { "," } else { "" };
        let _ = write!(
            text,
            r#"{comma}{{"ph":"X","cat":"{category}","name":"{name}","pid":{},"tid":{place},"ts":{time_us},
            "dur":{duration_us},"args":{{"correlation":{id},"stream":{place},"device":{},
            "wait_on_stream":{},"wait_on_cuda_event_record_corr_id":{}}}}}"#,
            u8::from(!is_device),
            event[5] >> 7,
            event[5] % 4,
            event[5] % 32,
        );
    }
    text.push(']');
    text
}

/// Returns a time, sometimes one of another clock, or at the ends of the range.
fn time_us(byte: u8, now: u32) -> i64 {
    match byte {
        255 => 1_712_195_495_506_763,
        254 => 4_611_686_018_427_386,
        253 => -4_611_686_018_427_386,
        252 => 9_000_000_000_000, // 104 days
        _ => now.into(),
    }
}

/// Returns a duration, sometimes one of months or decades, or a negative one.
fn duration_us(byte: u8) -> i64 {
    match byte {
        255 => 4_611_686_018_427_386,
        254 => 9_000_000_000_000,
        253 => -9_000_000_000_000,
        _ => byte.into(),
    }
}

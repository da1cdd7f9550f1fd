//! Latencies of a batch, one line each: `vllm bench latency`, and `bench_one_batch` of `SGLang`,
//! which adds the throughput. Times are seconds; operations have the printed names.

use crate::extract::format::Format;
use crate::extract::pattern::built_in;

pub(super) const FORMAT: Format = Format {
    name: "serving-latency",
    summary: "vllm bench latency and SGLang's bench_one_batch, text",
    anchors: &["latency: "],
    reader: || built_in(PATTERN),
};

const PATTERN: &str = r"^(?P<operation>Avg latency|\d+% percentile latency|(?:Prefill|Decode \d+|Decode|Total)\.(?: +Batch size: \d+,)? +(?:median )?latency): +(?P<time_s>\S+) (?:seconds|s, (?:median )?throughput: +(?P<throughput>\S+) token/s)\s*$";

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records};
    use super::*;
    use crate::extract::End;

    const LOG: &str = "\
Avg latency: 1.0815 seconds
50% percentile latency: 1.08 seconds
Prefill. latency: 0.04937 s, throughput:  20742.54 token/s
Decode 0. Batch size: 1, latency: 0.00500 s, throughput:    200.00 token/s
Decode.  median latency: 0.00000 s, median throughput:    200.00 token/s
network latency: 5 seconds
";

    #[test]
    fn a_latency_is_named_as_it_is_printed() {
        let found = extract(FORMAT, LOG, End::Whole);
        assert_eq!(
            records(&found),
            [
                ("Avg latency".into(), 1_081_500_000.0, "ok"),
                ("50% percentile latency".into(), 1_080_000_000.0, "ok"),
                ("Prefill. latency".into(), 49_370_000.0, "ok"),
                ("Decode 0. Batch size: 1, latency".into(), 5_000_000.0, "ok"),
                ("Decode.  median latency".into(), 0.0, "zero"),
            ]
        );
        assert_eq!(field(&found, 2, "throughput").as_deref(), Some("20742.54"));
    }
}

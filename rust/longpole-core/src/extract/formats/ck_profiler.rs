//! Composable Kernel's `ckProfiler`: `Perf: 1.2 ms, 108 TFlops, 79 GB/s, instance`, a line for each
//! instance. Times are milliseconds. The line `Best Perf` repeats one of them and is ignored.

use crate::extract::format::Format;
use crate::extract::pattern::built_in;

pub(super) const FORMAT: Format = Format {
    name: "ckprofiler",
    summary: "Composable Kernel's ckProfiler",
    anchors: &["Perf: "],
    reader: || built_in(PATTERN),
};

const PATTERN: &str = r"^\s*Perf: +(?P<time_ms>\S+) ms,(?: (?P<TFlops>\S+) TFlops,)? (?P<GBps>\S+) GB/s, *(?P<operation>\S.*?)\s*$";

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records, rejections};
    use super::*;
    use crate::extract::End;

    const LOG: &str = "\
a_m_k: dim 2, lengths {3840, 4096}, strides {4096, 1}
found 2 instances
Perf:     1.1933 ms, 107.977 TFlops, 79.0848 GB/s, DeviceGemmXdl<256, 128, 128, 4> Default
DeviceGemmXdl<64> does not support this problem
Perf: 2.5 ms, 79.0848 GB/s, DeviceReduce<256>
Perf: slow ms, 1 TFlops, 2 GB/s, DeviceGemmXdl<512>
Best Perf for datatype = f16 M = 3840 : 1.1933 ms, 107.977 TFlops, 79.0848 GB/s, DeviceGemmXdl
Best Perf: 1.1933 ms, 107.977 TFlops, 79.0848 GB/s
";

    #[test]
    fn each_instance_is_a_record_and_the_best_is_not_one_more() {
        let found = extract(FORMAT, LOG, End::Whole);
        assert_eq!(
            records(&found),
            [
                ("DeviceGemmXdl<256, 128, 128, 4> Default".into(), 1_193_300.0, "ok"),
                ("DeviceReduce<256>".into(), 2_500_000.0, "ok")
            ]
        );
        assert_eq!(field(&found, 0, "TFlops").as_deref(), Some("107.977"));
        assert_eq!(rejections(&found)[0].0, "not_a_number");
    }
}

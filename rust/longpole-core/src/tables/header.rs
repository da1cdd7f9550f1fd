//! The header of a trace: rank, world size, devices, base time.

/// The metadata of a document, at any position in the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// All fields except the events, as name and JSON text, in file order.
    pub fields: Vec<(String, String)>,
    /// The rank of the process in its job (`distributedInfo`).
    pub rank: Option<i64>,
    /// The number of processes of the job (`distributedInfo`).
    pub world_size: Option<i64>,
    /// The base of times in ns since 1970; `None` if times are absolute.
    pub base_time_ns: Option<i64>,
    /// The format: `kineto-json`, `chrome-json` for other JSON, or one of `xprof-json`, `xplane`,
    /// `perfetto`, `nsight-sqlite`, `rocpd`, `rocprofv3-json`, `rocprofv3-csv`, `rocprof-json`,
    /// `rocprof-csv`.
    pub format: &'static str,
    /// `gzip`, `zstd`, `xz` or `None`.
    pub compression: Option<&'static str>,
}

//! What a trace says about itself outside its events: rank, world size, devices, base time.

/// What the document says about itself, wherever in it that stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// Every field beside the events: its name and its value as JSON text, in
    /// the order of the file.
    pub fields: Vec<(String, String)>,
    /// The rank of the process among those of the job (`distributedInfo`).
    pub rank: Option<i64>,
    /// How many processes the job has (`distributedInfo`).
    pub world_size: Option<i64>,
    /// What times are relative to, in ns since 1970; none where they are absolute.
    pub base_time_ns: Option<i64>,
    /// `kineto-json`, or `chrome-json` for other JSON; or the name of another format: `xprof-json`,
    /// `xplane`, `perfetto`, `nsight-sqlite`, `rocpd`, `rocprofv3-json`,
    /// `rocprofv3-csv`, `rocprof-json`, `rocprof-csv`.
    pub format: &'static str,
    /// `gzip`, `zstd`, `xz` or none.
    pub compression: Option<&'static str>,
}

//! cublasLt's algorithms, as printed by NVIDIA's samples: a line for each, with the configuration,
//! the status of the call, and the time of one call in milliseconds. An algorithm with a status
//! other than 0 failed, regardless of its time.

use crate::extract::format::Format;
use crate::extract::pattern::built_in;

pub(super) const FORMAT: Format = Format {
    name: "cublaslt",
    summary: "cublasLt algorithms, as NVIDIA's samples print them",
    anchors: &["algo={ Id="],
    reader: || built_in(PATTERN),
};

const PATTERN: &str = r"^(?:result +\d+ : )?algo=\{ (?P<operation>Id=[^}]*[^} ]) *\} status (?:0|(?P<failed>-?\d+)) time (?P<time_ms>\S+?)(?:ms)? workspace=(?P<workspace>-?\d+) mathMode=(?P<mathMode>\S+) waves=(?P<waves>\S+)";

#[cfg(test)]
mod tests {
    use super::super::testing::{extract, field, records};
    use super::*;
    use crate::extract::End;

    const LOG: &str = "\
result 000 : algo={ Id=6, tileIdx=20 (128x128) splitK=1 reduc=0 swizzle=0 custom=0 stages=15} status 0 time 0.031744 workspace=0 mathMode=0 waves=0.592593
algo={ Id=0, tileIdx=5 (16x128) splitK=3 reduc=2 swizzle=1 custom=0 } status 15 time 0.000000 workspace=1024 mathMode=1 waves=1.5
algo={ Id=1, tileIdx=5 (16x128) splitK=3 reduc=2 swizzle=1 custom=0 } status 0 time 0.5ms workspace=1024 mathMode=1 waves=1.5
";

    #[test]
    fn an_algorithm_that_failed_is_no_result() {
        let found = extract(FORMAT, LOG, End::Whole);
        let told: Vec<_> = records(&found).into_iter().map(|row| (row.1, row.2)).collect();
        assert_eq!(told, [(31_744.0, "ok"), (0.0, "failed"), (500_000.0, "ok")]);
        assert_eq!(found.records.workspace_bytes, [0, 1024, 1024]);
        assert_eq!(
            records(&found)[1].0,
            "Id=0, tileIdx=5 (16x128) splitK=3 reduc=2 swizzle=1 custom=0"
        );
        assert_eq!(field(&found, 0, "waves").as_deref(), Some("0.592593"));
    }
}

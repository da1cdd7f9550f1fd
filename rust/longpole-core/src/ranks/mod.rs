//! Analyzes several ranks as one program.
//!
//! Each rank is reduced to the nodes that affect other ranks: the starts and ends of its
//! collectives, the ends of its steps, and the minimum latencies between these. The calls of the
//! ranks are matched, their clocks aligned, and one small graph is solved for all. `docs/ranks.md`
//! has the definitions.
//!
//! | question | modules |
//! |---|---|
//! | reduced form of a rank | `reduction`, `completions`, `profile` |
//! | calls matched across ranks | `matching`, `alignment` |
//! | clock differences | `clocks` |
//! | time of every boundary node, and its cause | `solve`, `route` |
//! | waiting, transfer and disagreements of each call | `calls` |
//! | serialization between processes | `packed` |

mod alignment;
mod calls;
mod clocks;
mod completions;
mod matching;
mod model;
mod packed;
mod profile;
mod reduction;
mod route;
mod solve;

pub use calls::{Cause, Finding, FindingKind, Shares, Transfer, shares, transfers};
pub use clocks::{Clocks, clocks};
pub use matching::{Matching, matching};
pub use model::{
    Boundary, BoundaryKind, Call, Channel, Clock, Maybe, Member, Method, ROOT, Rank, Reduced, WHOLE,
};
pub use packed::{packed, unpacked};
pub use profile::{
    NameTotal, Profile, Scaling, StepTotal, TimeClass, profile, scaled_latencies_ns,
};
pub use reduction::reduce;
pub use route::{Hop, Leg, LegKind, expand, lateness, route};
pub use solve::{Joint, Solution, solve};

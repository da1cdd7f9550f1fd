//! Reads the CSV files in which PyTorch's TunableOp keeps the fastest GEMM kernels.
//!
//! torch splits each line at its commas, keeps what it understands and drops the rest
//! in silence. Here every byte of the file belongs to exactly one [`Piece`], in the
//! order of the file, so that a file that is written back unchanged is the same file.
//! A piece is a line, or a part of one where rows were glued together because a line
//! end was missing. What does not follow the grammar is kept and has a [`Reason`].
//!
//! ```
//! use longpole_core::extract::tunable::{read, Kind};
//! use longpole_core::progress::silent;
//!
//! let file = read(b"Validator,PT_VERSION,2.9.1\n\
//!     GemmTunableOp_float_TN,tn_768_36_128_ld_128_128_768,Gemm_Rocblas_-11,0.0190437\n", &silent)?;
//!
//! let row = &file.pieces[1];
//! assert_eq!((row.line, row.kind), (2, Kind::Result));
//! assert_eq!((row.gemm.m, row.gemm.n, row.gemm.k), (768, 36, 128));
//! assert_eq!((row.solution_index, row.time_ns), (-11, 19_043.7));
//! # Ok::<(), longpole_core::Error>(())
//! ```

mod grammar;
mod kinds;
mod pieces;

pub use grammar::{Gemm, NO_NUMBER, Reason};
pub use kinds::{Ending, Kind};
pub use pieces::{Piece, TunableFile, read};

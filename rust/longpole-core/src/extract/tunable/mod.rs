//! Reads the CSV files in which PyTorch's TunableOp stores the fastest GEMM kernels.
//!
//! PyTorch splits each line at its commas, keeps what it understands and silently drops the rest.
//! Here, every byte of the file belongs to exactly one [`Piece`], in file order, so that writing
//! all pieces reproduces the file. A piece is a line, or a part of a line if rows were joined
//! because a line ending was missing. Pieces that do not match the grammar are kept with a
//! [`Reason`].
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
mod outline;
mod pieces;

pub use grammar::{FAMILIES, Gemm, NO_NUMBER, Reason};
pub use outline::{Outline, outline};
pub use pieces::{Ending, Kind};
pub use pieces::{Piece, TunableFile, read};

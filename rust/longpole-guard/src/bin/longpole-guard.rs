//! The guard as a program: reads requests from standard input and writes events to standard output.

use std::os::fd::AsFd;

fn main() -> std::io::Result<()> {
    longpole_guard::serve(std::io::stdin().as_fd(), std::io::stdout().as_fd())
}

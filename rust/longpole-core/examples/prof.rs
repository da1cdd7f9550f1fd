use longpole_core::read::*;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let mut options = Options::default();
    if std::env::args().nth(2).as_deref() == Some("ids") { options.arguments = Arguments::Ids; }
    let t = std::time::Instant::now();
    let tables = read_path(path.as_ref(), &options, &longpole_core::progress::silent).unwrap();
    println!("{} {:?}", tables.n_events(), t.elapsed());
}

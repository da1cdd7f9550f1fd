#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    (longpole_fuzz::target("written").expect("one of the targets").check)(bytes);
});

//! Replaces mangled C++ names of kernels by the names that people write.
//!
//! CUPTI passes demangled names on, the ROCm profilers and exports without symbols do not. All
//! later stages and figures see the same name for the same kernel.
//!
//! Limits: only names of the Itanium C++ ABI, up to [`LONGEST`] bytes in and out. A few bytes can
//! describe a name of any length, because parts are referred to by number.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use cpp_demangle::{DemangleOptions, DemangleWrite, Symbol};

use crate::ids::StringId;
use crate::tables::Tables;

const LONGEST: usize = 16 << 10;

/// The suffix of the descriptor of a kernel in code objects of AMD.
const DESCRIPTOR: &str = ".kd";

/// Replaces the mangled names of GPU activities.
pub(super) fn demangle(tables: &mut Tables) {
    let found: Vec<(StringId, String)> = tables
        .strings
        .iter()
        .enumerate()
        .filter_map(|(row, name)| Some((StringId::from_row(row), demangled(name)?)))
        .collect();
    if found.is_empty() {
        return;
    }
    let strings = Arc::make_mut(&mut tables.strings);
    let names: HashMap<_, _> =
        found.iter().map(|(name, text)| (*name, strings.intern(text))).collect();
    let events = Arc::make_mut(&mut tables.events);
    events.reopen_names();
    for event in events.ids().collect::<Vec<_>>() {
        let known = events.name(event).and_then(|name| names.get(&name));
        if let Some(&name) = known.filter(|_| events.kind(event).is_on_device()) {
            events.assign_name(event, name);
        }
    }
    events.finish();
}

/// Returns a mangled name as people write it; `None` for other names.
fn demangled(name: &str) -> Option<String> {
    let name = name.trim_end_matches(DESCRIPTOR);
    if !name.starts_with("_Z") || name.len() > LONGEST {
        return None;
    }
    let symbol = Symbol::new(name).ok()?;
    let mut text = Text(String::new());
    symbol.structured_demangle(&mut text, &DemangleOptions::default()).ok()?;
    Some(text.0).filter(|text| !text.is_empty())
}

/// A text that ends at the maximum length.
struct Text(String);

impl DemangleWrite for Text {
    fn write_string(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Options, read_bytes};

    #[test]
    fn a_mangled_name_becomes_the_one_of_the_program() {
        let name = demangled("_ZN2at6native13reduce_kernelILi512EfEEvT0_").unwrap();
        assert_eq!(name, "void at::native::reduce_kernel<512, float>(float)");
        assert_eq!(demangled("_Z4gemmPf.kd").as_deref(), Some("gemm(float*)"));
        for other in ["gemm", "_Z", "_ZN", "_Znonsense", "ncclKernel_Z1f"] {
            assert_eq!(demangled(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_that_grows_without_end_stays_as_it_is() {
        let doubled = |n: usize| format!("_Z1fI1AIiiE{}E", "S_".repeat(n));
        let mut bomb = "_Z1f1aI1bE".to_owned();
        for number in 0..36_u32 {
            let id = char::from_digit(number, 36).unwrap().to_ascii_uppercase();
            bomb.extend(["1pIS", &id.to_string(), "_S", &id.to_string(), "_E"]);
        }
        for name in [bomb, doubled(2_000), format!("_Z{}", "N1a".repeat(5_000))] {
            assert!(demangled(&name).is_none_or(|text| text.len() <= LONGEST));
        }
    }

    #[test]
    fn only_names_of_gpu_activities_are_replaced() {
        let event = |cat: &str| {
            format!(
                r#"{{"ph":"X","cat":"{cat}","name":"_Z4gemmPf","pid":0,"tid":7,"ts":1,"dur":2}}"#
            )
        };
        let text = format!("[{},{}]", event("kernel"), event("user_annotation"));
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let names = tables.events.ids().map(|event| tables.events.name(event).unwrap());
        let names: Vec<_> = names.map(|name| tables.strings.get(name)).collect();
        assert_eq!(names, ["gemm(float*)", "_Z4gemmPf"]);
    }
}

//! The JSON document of a saved trace, with everything outside its columns.

use super::archive::damaged;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::error::{Error, ErrorKind, Result, SAVE_VERSION};
use crate::ids::StringId;
use crate::tables::{ArgTable, ArgTables, Arguments, Header, Tables};
use crate::vocabulary::Vocabulary;
use serde_json::{Value, json};

const FORMAT: &str = "longpole-trace";

const FORMATS: &[&str] = &[
    "kineto-json",
    "chrome-json",
    "json-array",
    "xprof-json",
    "perfetto",
    "xplane",
    "nsight-sqlite",
    "rocpd",
    "rpd",
    "rocprofv3-json",
    "rocprofv3-csv",
    "rocprof-json",
    "rocprof-csv",
];

const COMPRESSIONS: &[&str] = &["gzip", "zstd", "xz"];

/// A category, by its string, with the names of its arguments.
type Named = (Option<i64>, Vec<String>);

/// The data outside the columns.
pub(super) struct Document {
    pub(super) arguments: Arguments,
    pub(super) vocabulary: Vocabulary,
    pub(super) header: Header,
    pub(super) diagnostics: Diagnostics,
    pub(super) phases: Vec<(u8, u64)>,
    pub(super) bytes: u64,
    pub(super) args: Vec<Named>,
}

/// Returns the document of some tables.
pub(crate) fn document_of(tables: &Tables) -> String {
    let header = &tables.header;
    let diagnostics = tables.diagnostics.iter();
    let document = json!({
        "format": FORMAT,
        "version": SAVE_VERSION,
        "arguments": match &tables.arguments {
            Arguments::Ids => json!("ids"),
            Arguments::Default => json!("default"),
            Arguments::Named(names) => json!(names),
        },
        "vocabulary": tables.vocabulary.additions(),
        "fields": header.fields,
        "rank": header.rank,
        "world_size": header.world_size,
        "base_time_ns": header.base_time_ns,
        "read_as": header.format,
        "compression": header.compression,
        "bytes": tables.bytes,
        "phases": tables.phases,
        "diagnostics": diagnostics.map(|row| row.to_json()).collect::<Vec<_>>(),
        "args": args_of(&tables.args),
    });
    document.to_string()
}

fn args_of(args: &ArgTables) -> Vec<Value> {
    let keys = |(category, table): (Option<StringId>, &ArgTable)| {
        let keys: Vec<_> = table.columns.iter().map(|column| column.key.as_str()).collect();
        json!([category.map(StringId::row), keys])
    };
    args.iter().map(keys).collect()
}

impl Document {
    /// Parses the document of a saved trace.
    pub(super) fn of(text: &[u8]) -> Result<Self> {
        let document: Value = serde_json::from_slice(text).map_err(|_| unsound())?;
        if document["format"] != FORMAT {
            return Err(unsound());
        }
        match document["version"].as_u64() {
            Some(SAVE_VERSION) => {
                let vocabulary = vocabulary(&document["vocabulary"])?;
                Self::sound(&document, vocabulary).ok_or_else(unsound)
            }
            Some(version) => Err(Error::new(ErrorKind::OtherSave { version }, 0)),
            None => Err(unsound()),
        }
    }

    fn sound(document: &Value, vocabulary: Vocabulary) -> Option<Self> {
        Some(Self {
            arguments: arguments(&document["arguments"])?,
            vocabulary,
            header: header(document)?,
            diagnostics: Diagnostics::of_rows(each(&document["diagnostics"], Diagnostic::of_json)?),
            phases: serde_json::from_value(document["phases"].clone()).ok()?,
            bytes: document["bytes"].as_u64()?,
            args: serde_json::from_value(document["args"].clone()).ok()?,
        })
    }
}

fn arguments(value: &Value) -> Option<Arguments> {
    Some(match value.as_str() {
        Some("ids") => Arguments::Ids,
        Some("default") => Arguments::Default,
        Some(_) => return None,
        None => Arguments::Named(serde_json::from_value(value.clone()).ok()?),
    })
}

/// Returns the vocabulary of a file, whose patterns are untrusted.
fn vocabulary(value: &Value) -> Result<Vocabulary> {
    let additions: Vec<[String; 3]> =
        serde_json::from_value(value.clone()).map_err(|_| unsound())?;
    let mut vocabulary = Vocabulary::default();
    for [section, meaning, pattern] in additions {
        vocabulary.add(&section, &meaning, &pattern).map_err(|error| {
            let why = format!("the vocabulary saved with the trace is invalid: {error}");
            Error::new(ErrorKind::NotSaved(why), 0)
        })?;
    }
    Ok(vocabulary)
}

fn header(document: &Value) -> Option<Header> {
    let format = document["read_as"].as_str()?;
    let integer = |name: &str| match &document[name] {
        Value::Null => Some(None),
        value => value.as_i64().map(Some),
    };
    Some(Header {
        fields: serde_json::from_value(document["fields"].clone()).ok()?,
        rank: integer("rank")?,
        world_size: integer("world_size")?,
        base_time_ns: integer("base_time_ns")?,
        format: FORMATS.iter().find(|known| **known == format)?,
        compression: match document["compression"].as_str() {
            Some(named) => Some(COMPRESSIONS.iter().find(|known| **known == named)?),
            None => None,
        },
    })
}

fn each<T>(values: &Value, of: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    values.as_array()?.iter().map(of).collect()
}

fn unsound() -> Error {
    damaged("its metadata cannot be read")
}

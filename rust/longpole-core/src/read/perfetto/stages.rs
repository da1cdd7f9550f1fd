//! Decodes GPU render stages.
//!
//! PyTorch writes all GPU activities as render stages. The name of the stage determines the kind;
//! device, stream and correlation id are strings in its extra data.

use super::fields::{
    DIMENSION_X, DIMENSION_Z, EXTRA_DATA, EXTRA_NAME, EXTRA_VALUE, GPU, GRID_SIZE, HARDWARE_QUEUE,
    HARDWARE_QUEUE_ID, KERNEL_ID, LAUNCH, NAME_OF_STAGE, NAME_OF_STAGE_ID, STAGE_DURATION,
    STAGE_ID, WORKGROUP_SIZE,
};
use super::sequence::Sequence;
use crate::ids::StringId;
use crate::read::protobuf::{Wire, fields};
use crate::read::rows::Rows;
use crate::tables::ArgValue;

/// The category of stages whose name does not determine the kind.
const ANY_STAGE: &str = "gpu_render_stage";

/// Kineto's categories by the name of a stage.
const CATEGORIES: &[(&str, &str)] = &[
    ("Kernel", "kernel"),
    ("Memcpy", "gpu_memcpy"),
    ("Memset", "gpu_memset"),
    ("Annotation", "gpu_user_annotation"),
    ("EventRecord", "graph_event_node"),
    ("HostNode", "graph_host_node"),
];

/// The fields of a stage that are read.
#[derive(Default)]
pub(super) struct Stage<'a> {
    pub(super) duration: Option<u64>,
    pub(super) gpu: Option<i64>,
    pub(super) queue: Option<i64>,
    /// Launch parameters: the size of the grid and of a block.
    pub(super) sizes: [Option<[i64; 3]>; 2],
    /// The extra data: names and values.
    pub(super) extra: Vec<(&'a [u8], &'a [u8])>,
    id: Option<u64>,
    kernel: Option<u64>,
    name: Option<&'a [u8]>,
    name_id: Option<u64>,
}

/// Decodes a stage; `None` if it is not a valid message.
pub(super) fn of(bytes: &[u8]) -> Option<Stage<'_>> {
    let mut stage = Stage::default();
    fields(bytes, |field, wire| {
        let number = wire.number();
        match (field, wire) {
            (STAGE_DURATION, _) => stage.duration = number,
            (STAGE_ID, _) => stage.id = number,
            (GPU, _) => stage.gpu = number.map(u64::cast_signed),
            (HARDWARE_QUEUE | HARDWARE_QUEUE_ID, _) => stage.queue = number.map(u64::cast_signed),
            (KERNEL_ID, _) => stage.kernel = number,
            (NAME_OF_STAGE_ID, _) => stage.name_id = number,
            (NAME_OF_STAGE, Wire::Bytes(name)) => stage.name = Some(name),
            (EXTRA_DATA, Wire::Bytes(bytes)) => stage.extra.push(extra(bytes)?),
            (LAUNCH, Wire::Bytes(bytes)) => stage.sizes = sizes(bytes)?,
            _ => {}
        }
        Some(())
    })?;
    Some(stage)
}

impl Stage<'_> {
    /// Returns the category and the name: of the activity or kernel, otherwise of the stage.
    pub(super) fn names(
        &self,
        sequence: &Sequence,
        rows: &mut Rows<'_>,
    ) -> (StringId, Option<StringId>) {
        let of = |id: Option<u64>, names: &Names| names.get(&id?).copied();
        let stage = of(self.id, &sequence.stages);
        let own = self.name.filter(|name| !name.is_empty()).map(|name| rows.text(name));
        let name = own
            .or_else(|| of(self.name_id, &sequence.names))
            .or_else(|| of(self.kernel, &sequence.kernels))
            .or(stage);
        let known = stage.map(|stage| rows.tables.strings.get(stage)).and_then(|stage| {
            CATEGORIES.iter().find(|row| row.0 == stage).map(|&(_, category)| category)
        });
        (rows.tables.strings.intern(known.unwrap_or(ANY_STAGE)), name)
    }
}

type Names = std::collections::HashMap<u64, StringId>;

/// Returns Kineto's name for an entry of the extra data.
pub(super) fn known_key(name: &str) -> &str {
    match name {
        "device id" => "device",
        "stream id" => "stream",
        "context id" => "context",
        name => name,
    }
}

/// Returns a value of the extra data, all of which are strings. Names of process groups stay
/// strings.
pub(super) fn value(name: &str, value: &[u8], rows: &mut Rows<'_>) -> ArgValue {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    match number.filter(|_| !name.starts_with("Process Group")) {
        Some(number) => ArgValue::Integer(number),
        None => ArgValue::Text(rows.text(value)),
    }
}

fn extra(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut name, mut value) = (&[][..], &[][..]);
    fields(bytes, |field, wire| {
        match field {
            EXTRA_NAME => name = wire.bytes()?,
            EXTRA_VALUE => value = wire.bytes()?,
            _ => {}
        }
        Some(())
    })?;
    Some((name, value))
}

/// Returns the sizes of the grid and of a block.
fn sizes(bytes: &[u8]) -> Option<[Option<[i64; 3]>; 2]> {
    let mut found = [None; 2];
    fields(bytes, |field, wire| {
        match (field, wire) {
            (GRID_SIZE, Wire::Bytes(bytes)) => found[0] = Some(dimensions(bytes)?),
            (WORKGROUP_SIZE, Wire::Bytes(bytes)) => found[1] = Some(dimensions(bytes)?),
            _ => {}
        }
        Some(())
    })?;
    Some(found)
}

fn dimensions(bytes: &[u8]) -> Option<[i64; 3]> {
    let mut found = [1; 3];
    fields(bytes, |field, wire| {
        if let DIMENSION_X..=DIMENSION_Z = field {
            found[usize::try_from(field - DIMENSION_X).ok()?] = wire.number()?.cast_signed();
        }
        Some(())
    })?;
    Some(found)
}

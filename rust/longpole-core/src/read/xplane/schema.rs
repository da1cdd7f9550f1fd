//! Field numbers of `tsl/profiler/protobuf/xplane.proto`.

use crate::read::protobuf::Field;

// XSpace
pub(super) const PLANES: Field = 1;
pub(super) const HOST_NAMES: Field = 4;
// XPlane, XLine, XEventMetadata, XStatMetadata
pub(super) const ID: Field = 1;
pub(super) const NAME: Field = 2;
// XPlane
pub(super) const LINES: Field = 3;
pub(super) const EVENT_METADATA: Field = 4;
pub(super) const STAT_METADATA: Field = 5;
// Entries of the two maps
pub(super) const KEY: Field = 1;
pub(super) const VALUE: Field = 2;
// XLine
pub(super) const TIMESTAMP_NS: Field = 3;
pub(super) const EVENTS: Field = 4;
pub(super) const DISPLAY_ID: Field = 10;
pub(super) const DISPLAY_NAME_OF_LINE: Field = 11;
// XEvent
pub(super) const METADATA_ID: Field = 1;
pub(super) const OFFSET_PS: Field = 2;
pub(super) const DURATION_PS: Field = 3;
pub(super) const STATS_OF_EVENT: Field = 4;
pub(super) const N_OCCURRENCES: Field = 5;
// XEventMetadata
pub(super) const DISPLAY_NAME: Field = 4;
pub(super) const STATS_OF_METADATA: Field = 5;
// XStat
pub(super) const STAT_ID: Field = 1;
pub(super) const DOUBLE: Field = 2;
pub(super) const UNSIGNED: Field = 3;
pub(super) const INTEGER: Field = 4;
pub(super) const TEXT: Field = 5;
pub(super) const REFERENCE: Field = 7;

//! Lists the collectives of a trace: one row for each kernel, or for each range of a CPU library.
//!
//! Each property comes from the first source that has it: the arguments of the kernel (PyTorch 2.3
//! and later), those of the `record_param_comms` around its launch (2.2), the tensors of the
//! library's range around it (`nccl:all_reduce`, 1.13 and later), the operator, and finally the
//! name of the kernel, which can be that of another operation.
//!
//! Limits: only the name is known for a kernel launched before recording began, or by a CUDA graph.
//! The root of a broadcast is not recorded.
//!
//! The file is this long because of its tests.

use std::collections::{BTreeMap, HashMap};

use super::collective_waits::collective_waits;
use crate::ids::EventId;
use crate::link::Launches;
use crate::names::named;
use crate::stack::Nesting;
use crate::tables::{EventKind, Tables, WorkClass, argument, argument_text};
use crate::vocabulary::{Collective, data_type, data_type_of_kernel, hccl_number, runs_on_cpu};

named! {
    /// The source of the operation of a collective, most reliable first.
    NamedBy {
        /// The profiler's record of the collective.
        Record "record",
        /// The range that the library marked around it.
        Annotation "annotation",
        /// The operator that called it.
        Operator "operator",
        /// The name of the kernel.
        Kernel "kernel",
    }
}

/// A process group as recorded on one rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name, often a number in order of creation.
    pub name: String,
    /// Its description by the program.
    pub description: Option<String>,
    /// Number of ranks.
    pub size: Option<i64>,
    /// The ranks, ascending; `None` if the trace truncates or omits the list.
    pub ranks: Option<Vec<i64>>,
}

/// The part of one rank in a collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectiveRow {
    /// The kernel, or the range on a thread.
    pub event: EventId,
    /// The launch call of the kernel.
    pub call: Option<EventId>,
    /// The operation.
    pub operation: Option<Collective>,
    /// The source of the operation.
    pub named_by: Option<NamedBy>,
    /// Its process group, as an index into [`Collectives::groups`].
    pub group: Option<usize>,
    /// Sequence number among the calls of the group, or of the pair of ranks.
    pub sequence: Option<i64>,
    /// The id that all ranks record for this call, in digits.
    pub id: Option<String>,
    /// The rank that it sends to or receives from.
    pub peer: Option<i64>,
    /// Number of input elements of this rank.
    pub in_elements: Option<i64>,
    /// Number of output elements of this rank.
    pub out_elements: Option<i64>,
    /// The data type of the elements.
    pub data_type: Option<&'static str>,
    /// Size of the larger buffer in bytes.
    pub bytes: Option<i64>,
    /// Whether the kernel combines several calls.
    pub is_coalesced: bool,
    /// Sort key that orders the calls of the rank.
    pub order: (i64, i64),
}

/// All collectives of a trace, in call order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collectives {
    /// The named process groups.
    pub groups: Vec<Group>,
    /// The kernels and ranges.
    pub rows: Vec<CollectiveRow>,
}

/// Lists the collectives of a trace.
pub fn collectives(tables: &Tables, launches: &Launches, nesting: &Nesting) -> Collectives {
    let class_of = tables.work_classes();
    let is_cpu = tables.strings.matching(runs_on_cpu);
    let n_ranks = collective_waits(tables).iter().map(|it| (it.event, it.group_size)).collect();
    let reader = Reader { tables, launches, nesting, is_cpu, n_ranks };
    let mut groups = Groups::described(tables);
    let mut rows: Vec<_> = tables
        .events
        .ids()
        .filter(|&event| tables.events.end_ns(event).is_some())
        .filter(|&event| {
            class_of(event) == Some(WorkClass::Communication) || reader.is_cpu_range(event)
        })
        .map(|event| reader.row(event, &mut groups))
        .collect();
    rows.sort_by_key(|row| (row.order, row.event));
    Collectives { groups: groups.rows, rows }
}

struct Reader<'a> {
    tables: &'a Tables,
    launches: &'a Launches,
    nesting: &'a Nesting,
    is_cpu: Vec<bool>,
    /// For each collective, the minimum number of ranks according to its tasks.
    n_ranks: HashMap<EventId, i64>,
}

/// The events that may describe a collective, most reliable first.
struct Sources {
    record: Option<EventId>,
    annotation: Option<EventId>,
    operator: Option<EventId>,
}

/// The arguments of a collective, on the event itself or on the record around it.
struct Arguments<'a> {
    events: Vec<EventId>,
    tables: &'a Tables,
}

impl<'a> Arguments<'a> {
    fn number(&self, key: &str) -> Option<i64> {
        self.events.iter().find_map(|&event| argument(event, key, self.tables))
    }

    /// Returns the first non-empty string.
    fn word(&self, key: &str) -> Option<&'a str> {
        let mut texts = self.events.iter().filter_map(|&it| argument_text(it, key, self.tables));
        texts.find(|text| !text.is_empty())
    }

    fn id(&self) -> Option<String> {
        self.events.iter().find_map(|&event| {
            let digits = || argument_text(event, "Comms Id", self.tables).map(str::to_owned);
            digits().or_else(|| Some(argument(event, "Comms Id", self.tables)?.to_string()))
        })
    }
}

impl Reader<'_> {
    /// Whether an event is a range of a CPU library that is not part of another range.
    fn is_cpu_range(&self, event: EventId) -> bool {
        self.has_cpu_name(event) && !self.around(event).any(|outer| self.has_cpu_name(outer))
    }

    fn has_cpu_name(&self, event: EventId) -> bool {
        let events = &self.tables.events;
        events.kind(event) == EventKind::Annotation
            && events.name(event).is_some_and(|name| self.is_cpu[name.row()])
    }

    fn around(&self, event: EventId) -> impl Iterator<Item = EventId> + '_ {
        std::iter::successors(self.nesting.parent(event), |&event| self.nesting.parent(event))
    }

    fn name(&self, event: EventId) -> &str {
        self.tables.events.name(event).map_or("", |name| self.tables.strings.get(name))
    }

    fn row(&self, event: EventId, groups: &mut Groups) -> CollectiveRow {
        let call = self.launches.launcher(event);
        let sources = self.sources(event, call);
        let (operation, named_by) = self.operation(event, &sources).unzip();
        let arguments = Arguments {
            events: [Some(event), sources.record].into_iter().flatten().collect(),
            tables: self.tables,
        };
        let number = |key: &str| arguments.number(key);
        let word = |key: &str| arguments.word(key);
        let hccl = hccl_number(self.name(event));
        let recorded_type = word("dtype").or_else(|| word("data_type"));
        let (data_type, width) = self.data_type(event, recorded_type, &sources).unzip();
        let (out_tensor, in_tensor) = self.buffers(&sources).unzip();
        let tensors = || sources.annotation.and_then(|it| self.elements(it));
        let counted = || number("count").filter(|_| hccl.is_some());
        let in_elements = number("In msg nelems").or(in_tensor).or_else(tensors).or_else(counted);
        let out_elements = number("Out msg nelems").or(out_tensor);
        let elements = in_elements.into_iter().chain(out_elements).max();
        CollectiveRow {
            event,
            call,
            operation,
            named_by,
            group: groups.of(
                word("Process Group Name").or(hccl.map(|(group, _)| group)),
                &|key: &str| number(key).or_else(|| self.shown_size(event, key)),
                word("Process Group Ranks"),
            ),
            sequence: number("Seq").or(hccl.map(|(_, number)| number)),
            id: arguments.id(),
            peer: peer(operation, number),
            in_elements,
            out_elements,
            data_type,
            bytes: elements.zip(width).and_then(|(count, width)| count.checked_mul(width)),
            is_coalesced: sources.annotation.is_some_and(|it| self.name(it).contains("coalesced")),
            order: self.order(event, call),
        }
    }

    /// Returns the events that describe a collective: around its launch, or the range itself.
    fn sources(&self, event: EventId, call: Option<EventId>) -> Sources {
        let events = &self.tables.events;
        let mut found = Sources { record: None, annotation: None, operator: None };
        let is_range = events.kind(event) == EventKind::Annotation;
        let first = if is_range { Some(event) } else { None };
        let outer = call.into_iter().flat_map(|call| self.around(call));
        for event in first.into_iter().chain(outer) {
            let name = self.name(event);
            let slot = match events.kind(event) {
                EventKind::Operator if name == "record_param_comms" => &mut found.record,
                EventKind::Operator if name.starts_with("c10d::") => &mut found.operator,
                EventKind::Annotation if names_library(name) => &mut found.annotation,
                _ => continue,
            };
            slot.get_or_insert(event);
        }
        found
    }

    /// Returns the number of ranks according to the tasks of a collective, if the size of its group
    /// is not recorded.
    fn shown_size(&self, event: EventId, key: &str) -> Option<i64> {
        self.n_ranks.get(&event).copied().filter(|_| key == "Group size")
    }

    fn operation(&self, event: EventId, sources: &Sources) -> Option<(Collective, NamedBy)> {
        let recorded = [Some(event), sources.record].into_iter().flatten();
        let recorded = recorded.filter_map(|it| argument_text(it, "Collective name", self.tables));
        let named = |event: Option<EventId>| event.map(|event| self.name(event));
        recorded
            .map(|name| (name, NamedBy::Record))
            .chain(named(sources.annotation).map(|name| (name, NamedBy::Annotation)))
            .chain(named(sources.operator).map(|name| (name, NamedBy::Operator)))
            .chain([(self.name(event), NamedBy::Kernel)])
            .find_map(|(name, by)| Some((Collective::of_name(name)?, by)))
    }

    fn data_type(
        &self,
        event: EventId,
        recorded: Option<&str>,
        sources: &Sources,
    ) -> Option<(&'static str, i64)> {
        let of_tensors = || {
            let types = argument_text(sources.annotation?, "Input type", self.tables)?;
            types.split('"').find_map(data_type)
        };
        recorded
            .and_then(data_type)
            .or_else(of_tensors)
            .or_else(|| data_type_of_kernel(self.name(event)))
    }

    /// Returns the total number of elements in the tensors of a range.
    fn elements(&self, range: EventId) -> Option<i64> {
        self.dimensions(range)?.iter().filter_map(n_elements).reduce(i64::saturating_add)
    }

    /// Returns the number of elements in both buffers, if an operator records them; the output
    /// buffer comes first.
    fn buffers(&self, sources: &Sources) -> Option<(i64, i64)> {
        let operator = sources.operator.filter(|&it| self.name(it).ends_with("_base_"))?;
        let dims = self.dimensions(operator)?;
        Some((n_elements(dims.first()?)?, n_elements(dims.get(1)?)?))
    }

    fn dimensions(&self, event: EventId) -> Option<Vec<serde_json::Value>> {
        serde_json::from_str(argument_text(event, "Input Dims", self.tables)?).ok()
    }

    /// Returns the sort key: by launch, then by start. Ranges are ordered by the number of the
    /// call, because the threads of a library start calls in any order.
    fn order(&self, event: EventId, call: Option<EventId>) -> (i64, i64) {
        let start_ns = self.tables.events.start_ns(event);
        let number = || argument(event, "Record function id", self.tables);
        match call {
            Some(call) => (self.tables.events.start_ns(call), start_ns),
            None if self.has_cpu_name(event) => (number().unwrap_or(start_ns), start_ns),
            None => (start_ns, start_ns),
        }
    }
}

/// Whether a name is that of a range of a communication library, such as `nccl:all_reduce`.
fn names_library(name: &str) -> bool {
    let library = name.split_once(':').map_or("", |(library, _)| library);
    matches!(library, "nccl" | "rccl" | "hccl" | "xccl" | "mccl") || runs_on_cpu(name)
}

/// Returns the number of elements of a tensor with the given dimensions, or of a list of tensors.
fn n_elements(dims: &serde_json::Value) -> Option<i64> {
    let dims = dims.as_array().filter(|dims| !dims.is_empty())?;
    if dims.iter().all(serde_json::Value::is_array) {
        return dims.iter().filter_map(n_elements).reduce(i64::saturating_add);
    }
    dims.iter().try_fold(1_i64, |product, size| product.checked_mul(size.as_i64()?))
}

/// Returns the other rank of a send or receive. The argument `Rank` also contains the other rank,
/// not its own.
fn peer(operation: Option<Collective>, number: impl Fn(&str) -> Option<i64>) -> Option<i64> {
    let named = match operation {
        Some(Collective::Send) => number("Dst Rank"),
        Some(Collective::Receive) => number("Src Rank"),
        _ => return None,
    };
    named.or_else(|| number("Rank")).filter(|&rank| rank >= 0)
}

/// Process groups by name and size, in order of first use.
#[derive(Default)]
struct Groups {
    rows: Vec<Group>,
    place: BTreeMap<(String, Option<i64>), usize>,
}

impl Groups {
    /// Returns the groups described in the header (`distributedInfo.pg_config`).
    fn described(tables: &Tables) -> Self {
        let mut groups = Self::default();
        let header = tables.header.fields.iter().find(|(name, _)| name == "distributedInfo");
        let distributed = header.and_then(|(_, text)| serde_json::from_str(text).ok());
        let distributed: serde_json::Value = distributed.unwrap_or_default();
        for entry in distributed["pg_config"].as_array().into_iter().flatten() {
            let Some(group) = described(entry) else { continue };
            let key = (group.name.clone(), group.size);
            groups.place.entry(key).or_insert(groups.rows.len());
            groups.rows.push(group);
        }
        groups
    }

    fn of(
        &mut self,
        name: Option<&str>,
        number: &impl Fn(&str) -> Option<i64>,
        ranks: Option<&str>,
    ) -> Option<usize> {
        let name = name?;
        let listed: Option<Vec<i64>> = ranks.and_then(|text| serde_json::from_str(text).ok());
        let size = number("Group size");
        let size = size.or_else(|| i64::try_from(listed.as_ref()?.len()).ok());
        let rows = &mut self.rows;
        let place = *self.place.entry((name.to_owned(), size)).or_insert_with(|| {
            rows.push(Group { name: name.to_owned(), size, ..Group::default() });
            rows.len() - 1
        });
        if rows[place].ranks.is_none() {
            rows[place].ranks = listed.map(sorted).or_else(|| strided(size?, number));
        }
        Some(place)
    }
}

fn described(entry: &serde_json::Value) -> Option<Group> {
    let either = |one: &str, other: &str| entry.get(one).or_else(|| entry.get(other));
    let ranks = entry.get("ranks").and_then(|ranks| {
        let listed = |text: &str| serde_json::from_str(text).ok();
        ranks.as_str().map_or_else(|| serde_json::from_value(ranks.clone()).ok(), listed)
    });
    Some(Group {
        name: either("pg_name", "name")?.as_str()?.to_owned(),
        description: either("pg_desc", "desc").and_then(|it| it.as_str()).map(str::to_owned),
        size: either("pg_size", "size").and_then(serde_json::Value::as_i64),
        ranks: ranks.map(sorted),
    })
}

/// Rebuilds a truncated rank list from its first rank and stride.
fn strided(size: i64, number: impl Fn(&str) -> Option<i64>) -> Option<Vec<i64>> {
    let start = number("Global rank start").filter(|&rank| rank >= 0)?;
    let stride = number("Global rank stride").filter(|&stride| stride > 0)?;
    let is_plausible = (1..=1 << 20).contains(&size);
    is_plausible.then(|| (0..size).map(|place| start + place * stride).collect())
}

fn sorted(mut ranks: Vec<i64>) -> Vec<i64> {
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::silent;
    use crate::read::{Options, read_bytes};
    use crate::{link, stack};

    fn found(text: &str) -> Collectives {
        let tables = read_bytes(text.as_bytes(), &Options::default()).unwrap();
        let launches = link::launches(&tables, &silent).unwrap();
        let nesting = stack::nesting(&tables, &silent).unwrap();
        collectives(&tables, &launches, &nesting)
    }

    #[test]
    fn the_arguments_of_the_kernel_count_before_its_name() {
        let found = found(
            r#"{"traceEvents": [
            {"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":7,"ts":5,"dur":9,
             "args":{"device":0,"stream":7,"correlation":1,"Collective name":"allreduce",
             "Process Group Name":"3","Process Group Ranks":"[4, 0]","Group size":2,"dtype":"Half",
             "In msg nelems":10,"Out msg nelems":12,"Seq":77,"Comms Id":18446744073709551610}}]}"#,
        );
        let row = &found.rows[0];
        assert_eq!(row.operation, Some(Collective::AllReduce));
        assert_eq!((row.sequence, row.bytes, row.data_type), (Some(77), Some(24), Some("float16")));
        assert_eq!(row.id.as_deref(), Some("18446744073709551610"));
        assert_eq!(found.groups[0].ranks, Some(vec![0, 4]));
    }

    #[test]
    fn without_a_record_the_range_around_the_launch_tells() {
        let found = found(
            r#"[{"ph":"X","cat":"user_annotation","name":"nccl:all_to_all","pid":1,"tid":1,"ts":0,"dur":20,
             "args":{"Input Dims":[[384, 2]],"Input type":["long"]}},
            {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":5,"dur":2,"args":{"correlation":1}},
            {"ph":"X","cat":"kernel","name":"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t","pid":0,"tid":7,"ts":15,"dur":9,
             "args":{"device":0,"stream":7,"correlation":1}}]"#,
        );
        let row = &found.rows[0];
        assert_eq!(row.operation, Some(Collective::AllToAll));
        assert_eq!((row.named_by, row.bytes), (Some(NamedBy::Annotation), Some(384 * 2 * 8)));
    }

    #[test]
    fn a_list_of_ranks_that_is_cut_follows_from_start_and_stride() {
        let found = found(
            r#"[{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":15,"dur":9,
             "args":{"device":0,"stream":7,"Collective name":"allreduce","Process Group Name":"1",
             "Process Group Ranks":"[1, 3, ..., 7]","Group size":4,"Global rank start":1,"Global rank stride":2}}]"#,
        );
        assert_eq!(found.groups[0].ranks, Some(vec![1, 3, 5, 7]));
    }

    #[test]
    fn calls_of_a_cpu_library_stand_in_the_order_in_which_they_were_made() {
        let range = |tid: i64, ts: i64, id: i64, n: i64| {
            format!(
                r#"{{"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":1,"tid":{tid},"ts":{ts},"dur":9,
                "args":{{"Record function id":{id},"Input Dims":[[{n}]],"Input type":["float"]}}}}"#
            )
        };
        let found = found(&format!("[{},{}]", range(5, 60, 11, 64), range(6, 40, 21, 128)));
        let elements: Vec<_> = found.rows.iter().map(|row| row.in_elements).collect();
        assert_eq!(elements, [Some(64), Some(128)]);
    }
}

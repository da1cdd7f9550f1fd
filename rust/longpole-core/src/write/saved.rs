//! Writes all tables of a trace to a file that is read without parsing.
//!
//! The file format is described in its reader, `read::saved`.

use std::io;
use std::io::Write;

use crate::ids::{InColumn, NO_INTEGER};
use crate::read::saved::archive::{
    DOCUMENT, LANES, MAX_DOCUMENT_BYTES, Member, SOURCES, array_header, directory, member_of,
};
use crate::read::saved::document_of;
use crate::tables::{Column, FlowTable, LaneTable, Tables};
use crc32fast::Hasher;

/// Writes the tables of a trace to a separate file, which [`read_path`](crate::read::read_path) can
/// read.
///
/// The same tables give the same bytes. Results of linking and nesting follow from the tables and
/// are not written.
///
/// # Errors
///
/// Returns an error if `out` cannot be written.
pub fn save(tables: &Tables, out: &mut impl Write) -> io::Result<()> {
    let mut archive = Archive { out, members: Vec::new(), offset: 0 };
    let document = document_of(tables);
    if document.len() as u64 > MAX_DOCUMENT_BYTES {
        return Err(io::Error::other("the header of the trace is too large to be saved"));
    }
    archive.member(DOCUMENT.to_owned(), &[document.as_bytes()])?;
    let (text, ends) = tables.strings.parts();
    let ends: Vec<_> = ends.iter().map(|&end| end as u64).collect();
    archive.column("strings", "text", Column::Bytes(text.as_bytes()))?;
    archive.column("strings", "ends", Column::Counts(&ends))?;
    archive.table("events", &tables.events.columns())?;
    archive.column("lanes", LANES, Column::Integers(&places(&tables.lanes)))?;
    for (number, (_, table)) in tables.args.iter().enumerate() {
        let name = format!("args/{number}");
        archive.column(&name, "event", Column::PackedRows(&table.event))?;
        for (place, column) in table.columns.iter().enumerate() {
            archive.column(&name, &place.to_string(), column.values.column())?;
        }
    }
    archive.flows("flows", &tables.flows)?;
    archive.flows("asyncs", &tables.asyncs)?;
    archive.table("counters", &tables.counters.columns())?;
    archive.table("metadata", &tables.metadata.columns())?;
    archive.finish()
}

fn places(lanes: &LaneTable) -> Vec<i64> {
    let numbers = lanes.places().iter().flat_map(|place| {
        let texts = [place.process, place.thread].map(|text| Some(text).in_column().into());
        let given = [place.device, place.stream].map(|number| number.unwrap_or(NO_INTEGER));
        texts.into_iter().chain(given)
    });
    numbers.collect()
}

struct Archive<'a, W: Write> {
    out: &'a mut W,
    members: Vec<Member>,
    offset: u64,
}

impl<W: Write> Archive<'_, W> {
    fn table(&mut self, name: &str, columns: &[(&str, Column<'_>)]) -> io::Result<()> {
        columns.iter().try_for_each(|&(column, values)| self.column(name, column, values))
    }

    fn flows(&mut self, name: &str, flows: &FlowTable) -> io::Result<()> {
        self.table(name, &flows.columns())?;
        self.column(name, "id", flows.id.column())?;
        let sources: Vec<_> = flows
            .sources()
            .iter()
            .flat_map(|source| {
                let (process, thread) = (Some(source.process), Some(source.thread));
                [source.category, source.name, process, thread].map(InColumn::in_column)
            })
            .collect();
        self.column(name, SOURCES, Column::Rows(&sources))
    }

    fn column(&mut self, table: &str, column: &str, values: Column<'_>) -> io::Result<()> {
        if let Some(unpacked) = values.unpacked() {
            return self.column(table, column, unpacked.column());
        }
        let (data_type, bytes) = match values {
            Column::Bytes(values) => ("|u1", values),
            Column::Rows(values) => ("<u4", bytemuck::cast_slice(values)),
            Column::Shorts(values) => ("<i4", bytemuck::cast_slice(values)),
            Column::Integers(values) => ("<i8", bytemuck::cast_slice(values)),
            Column::Counts(values) => ("<u8", bytemuck::cast_slice(values)),
            Column::Floats(values) => ("<f8", bytemuck::cast_slice(values)),
            _ => return Ok(()), // already unpacked
        };
        let header = array_header(data_type, values.len() as u64);
        self.member(member_of(table, column), &[&header, bytes])
    }

    fn member(&mut self, name: String, content: &[&[u8]]) -> io::Result<()> {
        let mut checksum = Hasher::new();
        for part in content {
            checksum.update(part);
        }
        let size = content.iter().map(|part| part.len() as u64).sum();
        let member = Member { name, crc: checksum.finalize(), size, offset: self.offset };
        let header = member.header();
        self.out.write_all(&header)?;
        content.iter().try_for_each(|part| self.out.write_all(part))?;
        self.offset += header.len() as u64 + size;
        self.members.push(member);
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        self.out.write_all(&directory(&self.members, self.offset))
    }
}

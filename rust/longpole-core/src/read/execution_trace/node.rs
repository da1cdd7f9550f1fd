//! Reads one node, in either layout.

use crate::diagnostics::Code;
use crate::ids::StringId;
use crate::read::json::{Scan, Scanner, Span, Token};
use crate::strings::Strings;
use crate::tables::{ExecutionNode, NO_INTEGER, NODE_IDS_BELOW, NodeLayout, NodeValues};

/// A node while it is read.
pub(super) struct Draft {
    pub(super) node: ExecutionNode,
    pub(super) layout: NodeLayout,
    pub(super) has_id: bool,
    pub(super) has_name: bool,
    members: String,
    attributes: String,
}

impl Draft {
    fn new(strings: &mut Strings) -> Self {
        let nothing = strings.intern("");
        let values =
            NodeValues { values: nothing, shapes: nothing, types: nothing, strides: nothing };
        let node = ExecutionNode {
            id: NO_INTEGER,
            name: nothing,
            parent: NO_INTEGER,
            rf_id: NO_INTEGER,
            fw_parent: NO_INTEGER,
            seq_id: NO_INTEGER,
            scope: NO_INTEGER,
            tid: NO_INTEGER,
            fw_tid: NO_INTEGER,
            op_schema: nothing,
            inputs: values,
            outputs: values,
            attributes: nothing,
            members: nothing,
        };
        Self {
            node,
            layout: NodeLayout::Flat,
            has_id: false,
            has_name: false,
            members: String::new(),
            attributes: String::new(),
        }
    }

    fn number(&mut self, name: &[u8]) -> Option<&mut i64> {
        let node = &mut self.node;
        Some(match name {
            b"id" => &mut node.id,
            b"parent" | b"ctrl_deps" => &mut node.parent,
            b"rf_id" => &mut node.rf_id,
            b"fw_parent" => &mut node.fw_parent,
            b"seq_id" => &mut node.seq_id,
            b"scope" => &mut node.scope,
            b"tid" => &mut node.tid,
            b"fw_tid" => &mut node.fw_tid,
            _ => return None,
        })
    }

    fn text(&mut self, name: &[u8]) -> Option<&mut StringId> {
        let node = &mut self.node;
        Some(match name {
            b"name" => &mut node.name,
            b"op_schema" => &mut node.op_schema,
            b"input_shapes" => &mut node.inputs.shapes,
            b"input_types" => &mut node.inputs.types,
            b"output_shapes" => &mut node.outputs.shapes,
            b"output_types" => &mut node.outputs.types,
            _ => return None,
        })
    }

    /// Stores a value in its column. Returns false if it has none.
    fn keep(&mut self, key: &[u8], value: Value<'_>, strings: &mut Strings) -> bool {
        if let (Some(column), Some(number)) = (self.number(key), value.number()) {
            *column = number;
            self.has_id |= key == b"id" && (0..NODE_IDS_BELOW).contains(&number);
            return true;
        }
        let Some(column) = self.text(key) else { return false };
        *column = value.intern(strings);
        self.has_name |= key == b"name";
        true
    }

    fn finish(mut self, strings: &mut Strings) -> Self {
        self.node.members = strings.intern(&self.members);
        self.node.attributes = strings.intern(&self.attributes);
        self
    }
}

/// A value and its text.
#[derive(Clone, Copy)]
struct Value<'a> {
    token: Token,
    raw: &'a [u8],
    text: &'a [u8],
}

impl Value<'_> {
    /// Returns the number, or the first of a list of numbers.
    fn number(&self) -> Option<i64> {
        match self.token {
            Token::Integer(number) => Some(number),
            Token::Nested(_) => {
                let inside = self.raw.strip_prefix(b"[")?;
                let end = inside.iter().position(|byte| b",]".contains(byte))?;
                std::str::from_utf8(&inside[..end]).ok()?.trim().parse().ok()
            }
            _ => None,
        }
    }

    /// Returns the text between the quotes, or the JSON text of any other value.
    fn intern(&self, strings: &mut Strings) -> StringId {
        match self.token {
            Token::Text(span) if span.is_plain() => strings.intern_plain(span.of(self.text)),
            Token::Text(span) => strings.intern_spelled(span.of(self.text)),
            _ => strings.intern(&String::from_utf8_lossy(self.raw)),
        }
    }
}

/// Reads the node that begins at the scanner's position.
pub(super) fn scan(scanner: &mut Scanner<'_>, strings: &mut Strings) -> Scan<Draft> {
    let mut draft = Draft::new(strings);
    members(scanner, &mut |scanner, key| member(scanner, key, &mut draft, strings))?;
    Ok(draft.finish(strings))
}

/// Calls `take` for each member of an object, with the scanner before the value.
fn members<'a>(
    scanner: &mut Scanner<'a>,
    take: &mut dyn FnMut(&mut Scanner<'a>, Span) -> Scan<()>,
) -> Scan<()> {
    scanner.expect(b'{')?;
    if scanner.peek_significant()? == b'}' {
        scanner.at += 1;
        return Ok(());
    }
    loop {
        if scanner.peek_significant()? != b'"' {
            return scanner.stop(Code::MalformedNode);
        }
        let key = scanner.quoted()?;
        scanner.expect(b':')?;
        take(scanner, key)?;
        if scanner.peek_significant()? == b'}' {
            scanner.at += 1;
            return Ok(());
        }
        scanner.expect(b',')?;
    }
}

fn member(
    scanner: &mut Scanner<'_>,
    key: Span,
    draft: &mut Draft,
    strings: &mut Strings,
) -> Scan<()> {
    let text = scanner.text;
    match key.of(text) {
        b"attrs" => {
            draft.layout = NodeLayout::Attributes;
            return attributes(scanner, draft, strings);
        }
        side @ (b"inputs" | b"outputs") => {
            let values =
                if side == b"inputs" { &mut draft.node.inputs } else { &mut draft.node.outputs };
            return lists(scanner, values, strings);
        }
        _ => {}
    }
    let value = value(scanner)?;
    if key.of(text) == b"ctrl_deps" {
        draft.layout = NodeLayout::Attributes;
    }
    if !draft.keep(key.of(text), value, strings) {
        let key = String::from_utf8_lossy(key.of(text));
        let raw = String::from_utf8_lossy(value.raw);
        append(&mut draft.members, &format!("\"{key}\": {raw}"));
    }
    Ok(())
}

fn append(list: &mut String, item: &str) {
    if !list.is_empty() {
        list.push_str(", ");
    }
    list.push_str(item);
}

fn value<'a>(scanner: &mut Scanner<'a>) -> Scan<Value<'a>> {
    scanner.peek_significant()?;
    let start = scanner.at;
    let token = scanner.value()?;
    Ok(Value { token, raw: &scanner.text[start..scanner.at], text: scanner.text })
}

/// Returns the lists of one side: an object with four lists or, in the flat layout, the values
/// alone.
fn lists(scanner: &mut Scanner<'_>, values: &mut NodeValues, strings: &mut Strings) -> Scan<()> {
    if scanner.peek_significant()? != b'{' {
        values.values = value(scanner)?.intern(strings);
        return Ok(());
    }
    members(scanner, &mut |scanner, key| {
        let text = scanner.text;
        let list = value(scanner)?.intern(strings);
        match key.of(text) {
            b"values" => values.values = list,
            b"shapes" => values.shapes = list,
            b"types" => values.types = list,
            b"strides" => values.strides = list,
            _ => {}
        }
        Ok(())
    })
}

fn attributes(scanner: &mut Scanner<'_>, draft: &mut Draft, strings: &mut Strings) -> Scan<()> {
    scanner.expect(b'[')?;
    loop {
        match scanner.peek_significant()? {
            b']' => {
                scanner.at += 1;
                return Ok(());
            }
            b',' => scanner.at += 1,
            _ => attribute(scanner, draft, strings)?,
        }
    }
}

fn attribute(scanner: &mut Scanner<'_>, draft: &mut Draft, strings: &mut Strings) -> Scan<()> {
    let start = scanner.at;
    let (mut name, mut found) = (None, None);
    members(scanner, &mut |scanner, key| {
        let text = scanner.text;
        let one = value(scanner)?;
        match key.of(text) {
            b"name" => name = Some(one),
            b"value" => found = Some(one),
            _ => {}
        }
        Ok(())
    })?;
    let (Some(name), Some(found)) = (name, found) else { return Ok(()) };
    let Token::Text(name) = name.token else { return Ok(()) };
    let name = name.of(scanner.text);
    // The name and id of the node itself are never attributes.
    if matches!(name, b"name" | b"id" | b"ctrl_deps" | b"parent")
        || !draft.keep(name, found, strings)
    {
        let raw = String::from_utf8_lossy(&scanner.text[start..scanner.at]);
        append(&mut draft.attributes, &raw);
    }
    Ok(())
}

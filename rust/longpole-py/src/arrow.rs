//! Core tables as Arrow C streams, without copying columns that are already in Arrow format.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt16Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, LargeStringArray, PrimitiveArray, RecordBatch,
    RecordBatchIterator,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use longpole_core::columns::{Column, Columns, Record};
use longpole_core::ids::{NO_ROW, StringId};
use longpole_core::stack::NO_DEPTH;
use longpole_core::strings::Strings;
use longpole_core::tables::{NO_INTEGER, Values};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::enter::detached;

/// Represents null among small integers.
const NO_SHORT: i32 = i32::MIN;

/// Columns owned by the core, exported through the Arrow stream protocol.
#[pyclass(frozen, module = "longpole._core")]
pub(crate) struct Table(RecordBatch);

#[pymethods]
impl Table {
    /// Returns the columns as an Arrow C stream, in a capsule. `requested_schema` is ignored, as
    /// the protocol allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(batches)),
            c"arrow_array_stream",
        )
    }

    /// Returns the number of rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns every row as a dictionary of plain values, for small tables.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows: Vec<_> = (0..self.0.num_rows()).map(|_| PyDict::new(py)).collect();
        for (field, column) in self.0.schema_ref().fields().iter().zip(self.0.columns()) {
            for (at, row) in rows.iter().enumerate() {
                row.set_item(field.name(), plain(py, column, at)?)?;
            }
        }
        Ok(rows)
    }
}

/// Returns the value of a column in a row; `None` where it is null.
fn plain<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into_bound_py_any(py),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_bound_py_any(py),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into_bound_py_any(py),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::Boolean => column.as_boolean().value(row).into_bound_py_any(py),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).into_bound_py_any(py),
        DataType::Dictionary(..) => {
            let texts = column.as_dictionary::<UInt32Type>();
            let place = texts.keys().value(row) as usize;
            texts.values().as_string::<i64>().value(place).into_bound_py_any(py)
        }
        other => {
            Err(PyRuntimeError::new_err(format!("a column of type {other} has no plain values")))
        }
    }
}

impl Table {
    /// Returns the table of some columns without strings of a trace.
    pub(crate) fn of(columns: Columns<'_>) -> PyResult<Self> {
        Self::with_texts(columns, &Strings::default())
    }

    /// Returns the table of some columns, with strings of a trace.
    pub(crate) fn with_texts(columns: Columns<'_>, strings: &Strings) -> PyResult<Self> {
        let table = Arrays::default();
        columns
            .0
            .into_iter()
            .fold(table, |table, (name, column)| table.column(name, column, strings))
            .into_table()
    }
}

/// Computes rows without the GIL and returns them as a table.
pub(crate) fn table<R: Record>(
    py: Python<'_>,
    rows: impl FnOnce() -> Vec<R> + Send,
) -> PyResult<Table> {
    detached(py, || Table::of(R::columns(&rows())))
}

/// A table under construction.
#[derive(Default)]
pub(crate) struct Arrays(Vec<(Field, ArrayRef)>);

impl Arrays {
    pub(crate) fn into_table(self) -> PyResult<Table> {
        let (fields, arrays): (Vec<_>, Vec<_>) = self.0.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map(Table)
            .map_err(|error: ArrowError| PyRuntimeError::new_err(error.to_string()))
    }

    fn with(mut self, name: &str, array: ArrayRef) -> Self {
        self.0.push((Field::new(name, array.data_type().clone(), true), array));
        self
    }

    /// Adds a column of the core.
    pub(crate) fn column(self, name: &str, column: Column<'_>, strings: &Strings) -> Self {
        match column {
            Column::Integers(values) if name == "device" => self.small_integers(name, values),
            Column::Rows(values) => {
                let nulls = nulls(&values, |&value| value == NO_ROW);
                self.with(name, Arc::new(PrimitiveArray::<UInt32Type>::new(values.into(), nulls)))
            }
            Column::Integers(values) => {
                let nulls = nulls(&values, |&value| value == NO_INTEGER);
                self.with(name, Arc::new(PrimitiveArray::<Int64Type>::new(values.into(), nulls)))
            }
            Column::Floats(values) => {
                let nulls = nulls(&values, |value| value.is_nan());
                self.with(name, Arc::new(PrimitiveArray::<Float64Type>::new(values.into(), nulls)))
            }
            Column::Booleans(values) => self.with(name, Arc::new(BooleanArray::from(values))),
            Column::Texts(codes) => self.texts(name, codes, strings),
            Column::Names(places, names) => {
                self.dictionary(name, places, LargeStringArray::from_iter_values(names))
            }
            Column::Strings(values) => {
                self.with(name, Arc::new(values.into_iter().collect::<LargeStringArray>()))
            }
        }
    }

    /// Adds a column of the core, shared without copying; [`NO_INTEGER`] is null.
    pub(crate) fn shared_integers<T: Send + Sync + 'static>(
        self,
        name: &str,
        owner: &Arc<T>,
        column: fn(&T) -> &[i64],
    ) -> Self {
        let nulls = nulls(column(owner), |&value| value == NO_INTEGER);
        let values = shared(owner, column);
        self.with(name, Arc::new(PrimitiveArray::<Int64Type>::new(values, nulls)))
    }

    /// Adds a column of row numbers of the core, shared without copying; [`NO_ROW`] is null.
    pub(crate) fn shared_rows<T: Send + Sync + 'static>(
        self,
        name: &str,
        owner: &Arc<T>,
        column: fn(&T) -> &[u32],
    ) -> Self {
        let nulls = nulls(column(owner), |&value| value == NO_ROW);
        let values = shared(owner, column);
        self.with(name, Arc::new(PrimitiveArray::<UInt32Type>::new(values, nulls)))
    }

    /// Adds a column of depths of the core, shared without copying; [`NO_DEPTH`] is null.
    pub(crate) fn shared_depths<T: Send + Sync + 'static>(
        self,
        name: &str,
        owner: &Arc<T>,
        column: fn(&T) -> &[u16],
    ) -> Self {
        let nulls = nulls(column(owner), |&value| value == NO_DEPTH);
        let values = shared(owner, column);
        self.with(name, Arc::new(PrimitiveArray::<UInt16Type>::new(values, nulls)))
    }

    /// Adds a column with the values of an argument, in the widest type of their kind.
    pub(crate) fn values(self, name: &str, values: &Values, strings: &Strings) -> Self {
        let column = match values {
            Values::Integers(values) => Column::Integers(values.iter().collect()),
            Values::Floats(values) => Column::Floats(values.floats().collect()),
            Values::Texts(values) => Column::Texts(values.rows().collect()),
        };
        self.column(name, column, strings)
    }

    /// Adds a column of small integers. Values out of range are null, as is [`NO_INTEGER`].
    fn small_integers(self, name: &str, values: Vec<i64>) -> Self {
        let values: Vec<_> =
            values.into_iter().map(|value| i32::try_from(value).unwrap_or(NO_SHORT)).collect();
        let nulls = nulls(&values, |&value| value == NO_SHORT);
        self.with(name, Arc::new(PrimitiveArray::<Int32Type>::new(values.into(), nulls)))
    }

    /// Adds a dictionary-encoded column of strings, given by their handles; [`NO_ROW`] is null.
    fn texts(self, name: &str, codes: Vec<u32>, strings: &Strings) -> Self {
        let mut dictionary = Vec::new();
        let mut row_of_string = vec![NO_ROW; strings.len()];
        let keys: Vec<u32> = codes
            .into_iter()
            .map(|code| {
                let Some(id) = StringId::from_column(code) else { return NO_ROW };
                if row_of_string[id.row()] == NO_ROW {
                    row_of_string[id.row()] = longpole_core::ids::row_in_column(dictionary.len());
                    dictionary.push(strings.get(id));
                }
                row_of_string[id.row()]
            })
            .collect();
        self.dictionary(name, keys, LargeStringArray::from_iter_values(dictionary))
    }

    fn dictionary(self, name: &str, keys: Vec<u32>, values: LargeStringArray) -> Self {
        let nulls = nulls(&keys, |&key| key == NO_ROW);
        let keys = PrimitiveArray::<UInt32Type>::new(keys.into(), nulls);
        self.with(name, Arc::new(DictionaryArray::new(keys, Arc::new(values))))
    }
}

/// Returns the validity of the values; `None` if all are valid.
fn nulls<T>(values: &[T], is_null: impl Fn(&T) -> bool) -> Option<NullBuffer> {
    values.iter().any(&is_null).then(|| {
        NullBuffer::new(BooleanBuffer::collect_bool(values.len(), |row| !is_null(&values[row])))
    })
}

/// A column and its owner.
struct Shared<T, V: 'static> {
    owner: Arc<T>,
    column: fn(&T) -> &[V],
}

impl<T, V: bytemuck::Pod> AsRef<[u8]> for Shared<T, V> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice((self.column)(&self.owner))
    }
}

fn shared<T, V>(owner: &Arc<T>, column: fn(&T) -> &[V]) -> ScalarBuffer<V>
where
    T: Send + Sync + 'static,
    V: bytemuck::Pod + arrow_buffer::ArrowNativeType + Send,
{
    let bytes = Bytes::from_owner(Shared { owner: Arc::clone(owner), column });
    ScalarBuffer::from(Buffer::from(bytes))
}

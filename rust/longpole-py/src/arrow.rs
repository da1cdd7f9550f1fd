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
use longpole_core::ids::{NO_ROW, StringId};
use longpole_core::names::Names;
use longpole_core::stack::NO_DEPTH;
use longpole_core::strings::Strings;
use longpole_core::tables::{NO_INTEGER, Values};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

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

/// A table under construction.
#[derive(Default)]
pub(crate) struct Columns(Vec<(Field, ArrayRef)>);

impl Columns {
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

    /// Adds a column of small integers. Values out of range are null, as is [`NO_INTEGER`].
    pub(crate) fn small_integers(self, name: &str, values: impl Iterator<Item = i64>) -> Self {
        let values: Vec<_> = values.map(|value| i32::try_from(value).unwrap_or(NO_SHORT)).collect();
        self.shorts(name, values)
    }

    /// Adds a column of small integers; [`NO_SHORT`] is null.
    fn shorts(self, name: &str, values: Vec<i32>) -> Self {
        let nulls = nulls(&values, |&value| value == NO_SHORT);
        self.with(name, Arc::new(PrimitiveArray::<Int32Type>::new(values.into(), nulls)))
    }

    /// Adds a column of integers; [`NO_INTEGER`] is null.
    pub(crate) fn integers(self, name: &str, values: Vec<i64>) -> Self {
        let nulls = nulls(&values, |&value| value == NO_INTEGER);
        self.with(name, Arc::new(PrimitiveArray::<Int64Type>::new(values.into(), nulls)))
    }

    /// Adds a column of row numbers; [`NO_ROW`] is null.
    pub(crate) fn rows(self, name: &str, values: Vec<u32>) -> Self {
        let nulls = nulls(&values, |&value| value == NO_ROW);
        self.with(name, Arc::new(PrimitiveArray::<UInt32Type>::new(values.into(), nulls)))
    }

    /// Adds a column of floats; NaN is null.
    pub(crate) fn floats(self, name: &str, values: Vec<f64>) -> Self {
        let nulls = nulls(&values, |value| value.is_nan());
        self.with(name, Arc::new(PrimitiveArray::<Float64Type>::new(values.into(), nulls)))
    }

    /// Adds a column of booleans without nulls.
    pub(crate) fn booleans(self, name: &str, values: Vec<bool>) -> Self {
        self.with(name, Arc::new(BooleanArray::from(values)))
    }

    /// Adds a column with the values of an argument, in the widest type of their kind.
    pub(crate) fn values(self, name: &str, values: &Values, strings: &Strings) -> Self {
        match values {
            Values::Integers(values) => self.integers(name, values.iter().collect()),
            Values::Floats(values) => self.floats(name, values.floats().collect()),
            Values::Texts(values) => self.texts(name, values.rows(), strings),
        }
    }

    /// Adds a dictionary-encoded column of strings, given by their handles; [`NO_ROW`] is null.
    pub(crate) fn texts(
        self,
        name: &str,
        codes: impl Iterator<Item = u32>,
        strings: &Strings,
    ) -> Self {
        let mut dictionary = Vec::new();
        let mut row_of_string = vec![NO_ROW; strings.len()];
        let keys: Vec<u32> = codes
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

    /// Adds a column of strings from a short list, given by index.
    pub(crate) fn choices(
        self,
        name: &str,
        places: impl Iterator<Item = u32>,
        choices: &[&str],
    ) -> Self {
        self.dictionary(name, places.collect(), LargeStringArray::from_iter_values(choices))
    }

    /// Adds a column with the names of enum values.
    pub(crate) fn words<T: Names>(self, name: &str, words: impl Iterator<Item = T>) -> Self {
        self.choices(name, words.map(T::place), T::NAMES)
    }

    /// Adds a column with the names of enum values; `None` is null.
    pub(crate) fn known_words<T: Names>(
        self,
        name: &str,
        words: impl Iterator<Item = Option<T>>,
    ) -> Self {
        self.choices(name, words.map(|word| word.map_or(NO_ROW, T::place)), T::NAMES)
    }

    /// Adds a column of strings that are mostly distinct.
    pub(crate) fn strings<'a>(
        self,
        name: &str,
        values: impl Iterator<Item = Option<&'a str>>,
    ) -> Self {
        self.with(name, Arc::new(values.collect::<LargeStringArray>()))
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

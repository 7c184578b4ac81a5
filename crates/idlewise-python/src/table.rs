//! Tables of results, as Arrow and as plain Python.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema};
use idlewise::idle::Statistics;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyInt, PyList};
use serde_json::{Map, Value};

use crate::capsule;
use crate::error::Error;
use crate::tuning::plan_columns;
use crate::values::{members, to_python};

/// So many rows of a table are shown.
const SHOWN: usize = 20;

#[doc = doc!("Table")]
#[pyclass(frozen, module = "idlewise")]
pub struct Table {
    rows: Vec<Map<String, Value>>,
    names: Vec<String>,
    batch: RecordBatch,
}

impl Table {
    /// Columns are all members that rows have, in the order in which they come; what a row lacks is null. Members that are lists or
    /// objects are left out.
    pub fn new(rows: Vec<Map<String, Value>>) -> Self {
        Self::like(&Map::new(), rows)
    }

    /// The same with the columns of `model` first, of its types, whether a row has them or not: tables of other data can be put below.
    pub fn like(model: &Map<String, Value>, rows: Vec<Map<String, Value>>) -> Self {
        let mut names: Vec<String> = model.keys().cloned().collect();
        for (name, value) in rows.iter().flatten() {
            if !matches!(value, Value::Array(_) | Value::Object(_)) && !names.contains(name) {
                names.push(name.clone());
            }
        }
        let of = |name: &String| column(name, model.get(name), &rows);
        let columns: Vec<(Field, ArrayRef)> = names.iter().map(of).collect();
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let schema = Arc::new(Schema::new(fields));
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options).expect("columns are of one length");
        Self { rows, names, batch }
    }

    fn values(&self, name: &str) -> Vec<&Value> {
        self.rows.iter().map(|row| row.get(name).unwrap_or(&Value::Null)).collect()
    }
}

/// The narrowest type that all values and `like` have: booleans, whole numbers, numbers, or else text.
fn column(name: &str, like: Option<&Value>, rows: &[Map<String, Value>]) -> (Field, ArrayRef) {
    let values: Vec<&Value> = rows.iter().map(|row| row.get(name).unwrap_or(&Value::Null)).collect();
    let all = |is: fn(&Value) -> bool| values.iter().copied().chain(like).all(|value| value.is_null() || is(value));
    let array: ArrayRef = if all(Value::is_null) || all(Value::is_f64) {
        built(&values, Float64Builder::new(), |column, value| column.append_option(value.as_f64()))
    } else if all(Value::is_boolean) {
        built(&values, BooleanBuilder::new(), |column, value| column.append_option(value.as_bool()))
    } else if all(|value| value.is_i64()) {
        built(&values, Int64Builder::new(), |column, value| column.append_option(value.as_i64()))
    } else if all(Value::is_number) {
        built(&values, Float64Builder::new(), |column, value| column.append_option(value.as_f64()))
    } else {
        Arc::new(values.iter().map(|value| value.as_str()).collect::<StringArray>())
    };
    (Field::new(name, array.data_type().clone(), true), array)
}

fn built<B: arrow_array::builder::ArrayBuilder>(
    values: &[&Value],
    mut column: B,
    append: impl Fn(&mut B, &Value),
) -> ArrayRef {
    values.iter().for_each(|value| append(&mut column, value));
    column.finish()
}

#[pymethods]
impl Table {
    #[doc = doc!("Table.column_names")]
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if !self.names.iter().any(|one| one == name) {
            return Err(pyo3::exceptions::PyKeyError::new_err(name.to_owned()));
        }
        to_python(py, &self.values(name))
    }

    /// Of rows of plain Python, all with the same names, in the types of a fleet's columns.
    #[staticmethod]
    fn _of_rows(rows: Vec<Bound<PyDict>>) -> PyResult<Self> {
        let row = |row: &Bound<PyDict>| -> PyResult<Map<String, Value>> {
            row.iter().map(|(name, value)| Ok((name.extract()?, plain(&value)?))).collect()
        };
        let rows = rows.iter().map(row).collect::<PyResult<Vec<_>>>()?;
        let mut model = members(&Statistics::default());
        model.extend(plan_columns());
        model.retain(|name, _| rows.first().is_some_and(|row| row.contains_key(name)));
        Ok(Self::like(&model, rows))
    }

    #[doc = doc!("Table.to_dict")]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in &self.names {
            dict.set_item(name, to_python(py, &self.values(name))?)?;
        }
        Ok(dict)
    }

    #[doc = doc!("Table.rows")]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = |row: &Map<String, Value>| {
            let of = |name: &String| (name.clone(), row.get(name).cloned().unwrap_or(Value::Null));
            to_python(py, &Value::Object(self.names.iter().map(of).collect()))
        };
        PyList::new(py, self.rows.iter().map(all).collect::<PyResult<Vec<_>>>()?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.batch.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // What is asked for is a wish; who has it casts.
        drop(requested_schema);
        one_batch(py, self.batch.clone())
    }

    fn __repr__(&self) -> String {
        format!("<idlewise.Table: {} rows of {}>", self.rows.len(), self.names.join(", "))
    }

    fn _repr_html_(&self) -> String {
        let cells = |tag: &str, cells: Vec<String>| {
            let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
            format!("<tr>{}</tr>", cells.collect::<String>())
        };
        let of = |row: &Map<String, Value>| cells("td", self.names.iter().map(|name| shown(row.get(name))).collect());
        let rows: String = self.rows.iter().take(SHOWN).map(of).collect();
        let more = self.rows.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("<p>and {more} more rows</p>") } else { String::new() };
        format!("<table>{}{rows}</table>{more}", cells("th", self.names.clone()))
    }
}

fn plain(value: &Bound<PyAny>) -> PyResult<Value> {
    Ok(match () {
        () if value.is_none() => Value::Null,
        () if value.is_instance_of::<PyBool>() => value.extract::<bool>()?.into(),
        () if value.is_instance_of::<PyInt>() => value.extract::<i64>()?.into(),
        () if value.is_instance_of::<PyFloat>() => value.extract::<f64>()?.into(),
        () => value.extract::<String>()?.into(),
    })
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// Names come from files that others made.
pub fn escaped(text: &str) -> String {
    let text = idlewise::report::printable::one_line(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A capsule that gives one batch.
pub fn one_batch<'py>(py: Python<'py>, batch: RecordBatch) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = batch.schema();
    capsule::stream(py, Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

/// The type of a column of times.
pub const TIME: DataType = DataType::Duration(arrow_schema::TimeUnit::Nanosecond);

/// A number for a column whose numbers have a sign.
pub fn signed(name: &str, number: u64) -> Result<i64, Error> {
    let beyond = |_| Error::Value(format!("{name}: {number} is more than a column of Arrow holds, 2^63 - 1"));
    number.try_into().map_err(beyond)
}

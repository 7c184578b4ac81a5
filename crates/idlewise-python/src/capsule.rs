//! Arrow's C interface, both ways: whatever gives `__arrow_c_stream__` is read, and ours give it.

use arrow_array::RecordBatch;
use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::batches::Batches;

const STREAM: &std::ffi::CStr = c"arrow_array_stream";
const SCHEMA: &std::ffi::CStr = c"arrow_schema";

/// Whether something can be read as a stream.
pub fn is_stream(object: &Bound<PyAny>) -> bool {
    object.hasattr("__arrow_c_stream__").unwrap_or(false)
}

/// The batches of anything with `__arrow_c_stream__`.
pub fn batches(object: &Bound<PyAny>) -> PyResult<Batches> {
    if !is_stream(object) {
        return Err(PyTypeError::new_err(format!(
            "requests come as Arrow: anything with __arrow_c_stream__, not {}",
            object.get_type().name()?
        )));
    }
    // How long buffers are is not told by the interface.
    let checked = object.py().import("idlewise._arrow")?.call_method1("checked", (object,))?;
    let given = checked.call_method0("__arrow_c_stream__")?;
    let capsule = given.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a stream by Arrow's C interface. It is moved out, which leaves a released one behind.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    Batches::new(stream).map_err(|error| crate::error::value_error(&error.to_string()))
}

/// A capsule that gives these batches, once.
pub fn stream<'py>(py: Python<'py>, batches: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// A capsule that gives the types of columns.
pub fn schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).expect("our types are Arrow's own");
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Batches that are made one after the other.
pub struct Made<F> {
    /// Of all batches.
    pub schema: SchemaRef,
    /// The next one, if there is one.
    pub next: F,
}

impl<F: FnMut() -> Option<Result<RecordBatch, ArrowError>>> Iterator for Made<F> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.next)()
    }
}

impl<F: FnMut() -> Option<Result<RecordBatch, ArrowError>>> RecordBatchReader for Made<F> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

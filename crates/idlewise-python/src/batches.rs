//! The batches of a stream of Arrow's C interface. The interface does not say how long buffers are: where text ends is taken from
//! its offsets, which may come from a file that someone else made.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

/// Batches, each looked at before it is taken.
pub struct Batches {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl Batches {
    /// Those of a stream that holds by the interface.
    pub fn new(mut stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let get = stream.get_schema.ok_or_else(|| wrong("the stream was read before"))?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is not released, and both live until the call returns.
        if unsafe { get(&raw mut stream, &raw mut schema) } != 0 {
            return Err(last_error(&mut stream));
        }
        let schema = Arc::new(Schema::try_from(&schema)?);
        Ok(Self { stream, schema })
    }

    /// The types of the columns.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    fn taken(&self, array: FFI_ArrowArray) -> Result<RecordBatch, ArrowError> {
        let kind = DataType::Struct(self.schema.fields().clone());
        let rows = array.len();
        check(&array, &kind)?;
        // SAFETY: the stream says that its batches are of this type, and no text ends before it begins.
        let columns = StructArray::from(unsafe { from_ffi_and_data_type(array, kind) }?).into_parts().1;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let get = self.stream.get_next?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is not released, and both live until the call returns.
        if unsafe { get(&raw mut self.stream, &raw mut array) } != 0 {
            return Some(Err(last_error(&mut self.stream)));
        }
        if array.is_released() { None } else { Some(self.taken(array)) }
    }
}

fn wrong(why: &str) -> ArrowError {
    ArrowError::CDataInterface(why.into())
}

fn last_error(stream: &mut FFI_ArrowArrayStream) -> ArrowError {
    // SAFETY: the stream is not released.
    let said = stream.get_last_error.map(|get| unsafe { get(&raw mut *stream) }).filter(|said| !said.is_null());
    // SAFETY: it is a text of C, and is there until the stream is called again.
    let said = said.map(|said| unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned());
    wrong(&said.unwrap_or_else(|| "the stream ended with an error".into()))
}

/// Refuses what cannot even be taken: columns of other lengths, and text whose last offset is below zero.
fn check(array: &FFI_ArrowArray, kind: &DataType) -> Result<(), ArrowError> {
    match kind {
        DataType::Utf8 | DataType::Binary => ends_above_zero::<i32>(array),
        DataType::LargeUtf8 | DataType::LargeBinary => ends_above_zero::<i64>(array),
        DataType::Dictionary(_, of) => array.dictionary().map_or(Ok(()), |names| check(names, of)),
        DataType::Struct(fields) => {
            let (children, rows) = (array.num_children(), array.len() + array.offset());
            if children != fields.len() || (0..children).any(|at| array.child(at).len() < rows) {
                return Err(wrong("the columns do not fit their table"));
            }
            fields.iter().enumerate().try_for_each(|(at, field)| check(array.child(at), field.data_type()))
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
            if array.num_children() == 1 =>
        {
            check(array.child(0), field.data_type())
        }
        DataType::RunEndEncoded(_, values) if array.num_children() == 2 => check(array.child(1), values.data_type()),
        DataType::Union(fields, _) if array.num_children() == fields.len() => {
            fields.iter().enumerate().try_for_each(|(at, (_, field))| check(array.child(at), field.data_type()))
        }
        _ if kind.is_nested() => Err(wrong("a column does not fit its type")),
        _ => Ok(()),
    }
}

fn ends_above_zero<T: Copy + Default + PartialOrd>(array: &FFI_ArrowArray) -> Result<(), ArrowError> {
    if array.num_buffers() != 3 {
        return Err(wrong("a column of text has three buffers"));
    }
    let offsets = array.buffer(1).cast::<T>();
    // None are needed where there is no text, and elsewhere they are missed when the column is taken.
    if array.is_empty() || offsets.is_null() {
        return Ok(());
    }
    // SAFETY: there is one offset more than there are texts; it need not be aligned.
    let last = unsafe { offsets.add(array.offset() + array.len()).read_unaligned() };
    if last < T::default() { Err(wrong("a column of text is damaged: its last offset is below zero")) } else { Ok(()) }
}

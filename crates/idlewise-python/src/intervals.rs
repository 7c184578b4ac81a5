//! Idle intervals as a table.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, DurationNanosecondArray, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use idlewise::idle::Idleness;

use crate::error::Error;
use crate::table::{TIME, signed};

/// The columns.
pub fn schema() -> Schema {
    Schema::new(vec![
        Field::new("volume", DataType::Utf8, false),
        Field::new("begin", TIME, false),
        Field::new("length", TIME, false),
        Field::new("followers", DataType::Int64, false),
        Field::new("busy_before", TIME, false),
    ])
}

/// A row an interval. It begins where the busy period before it ends.
pub fn intervals(disks: &[Idleness]) -> Result<RecordBatch, Error> {
    let count = disks.iter().map(|disk| disk.intervals.len()).sum();
    let mut names = StringBuilder::with_capacity(count, 8 * count);
    let [mut begins, mut lengths, mut followers, mut busy] = [(); 4].map(|()| Vec::with_capacity(count));
    for disk in disks {
        let mut at = disk.begin.0;
        for interval in &disk.intervals {
            at += interval.busy_before.0;
            names.append_value(&disk.volume);
            begins.push(signed("begin", at)?);
            lengths.push(signed("length", interval.length.0)?);
            followers.push(signed("followers", interval.followers)?);
            busy.push(signed("busy_before", interval.busy_before.0)?);
            at += interval.length.0;
        }
    }
    let duration = |times: Vec<i64>| Arc::new(DurationNanosecondArray::from(times)) as ArrayRef;
    let followers = Arc::new(Int64Array::from(followers));
    let columns =
        vec![Arc::new(names.finish()) as ArrayRef, duration(begins), duration(lengths), followers, duration(busy)];
    Ok(RecordBatch::try_new(Arc::new(schema()), columns).expect("the columns are those of the schema"))
}

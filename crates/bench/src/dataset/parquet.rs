//! Converts rows of a parquet file to JSON, so that all formats of a data set are read in the same
//! way.

use std::fs::File;
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Map, Value};

/// Returns whether a file is a parquet file, judging by its extension.
pub(super) fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "parquet")
}

/// Returns all rows in order.
pub(super) fn rows(path: &Path) -> Result<Vec<Value>, ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let rows = reader.get_row_iter(None)?;
    rows.map(|row| Ok(object(&row?))).collect()
}

fn object(row: &Row) -> Value {
    let columns = row.get_column_iter();
    let fields = columns.map(|(name, field)| (name.clone(), value(field)));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Converts strings, booleans, numbers, and groups and lists of these. Instances use no other
/// types.
fn value(field: &Field) -> Value {
    match field {
        Field::Str(text) => text.as_str().into(),
        Field::Bool(is) => (*is).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::Double(number) => (*number).into(),
        Field::Group(row) => object(row),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        // Other types of the format are not used by instances.
        _ => Value::Null,
    }
}

//! Rows of a parquet file as JSON, so that both forms of a data set are read alike.

use std::fs::File;
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Map, Value};

/// Whether a file is one of parquet, by its name.
pub(super) fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "parquet")
}

/// All rows, in their order.
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

/// Texts, numbers, truths, and what is made of them; an instance has nothing else to be read.
fn value(field: &Field) -> Value {
    match field {
        Field::Str(text) => text.as_str().into(),
        Field::Bool(is) => (*is).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::Double(number) => (*number).into(),
        Field::Group(row) => object(row),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        // Other types of the format, which is not ours.
        _ => Value::Null,
    }
}

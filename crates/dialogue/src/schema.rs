//! JSON schemas for the arguments of tools, reduced to what models need.

use schemars::{JsonSchema, generate::SchemaSettings};

/// Returns a JSON schema without the parts that models do not need.
pub fn schema<T: JsonSchema>() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    prune(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
    }
    schema
}

fn prune(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(object) => {
            for key in ["$schema", "title", "default"] {
                if !object.get(key).is_some_and(serde_json::Value::is_object) {
                    object.remove(key);
                }
            }
            if let Some(serde_json::Value::Array(types)) = object.get("type").cloned()
                && let Some(first) = types.first()
            {
                object.insert("type".to_owned(), first.clone());
            }
            object.values_mut().for_each(prune);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(prune),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

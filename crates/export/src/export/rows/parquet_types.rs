//! Columns of Parquet under other names.

use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};

/// A column with another name, and all else as it is.
///
/// # Errors
/// If the type is not one that Parquet has.
pub(super) fn named(column: &Type, name: &str) -> Result<TypePtr> {
    let info = column.get_basic_info();
    let (converted, logical) = (info.converted_type(), info.logical_type_ref().cloned());
    let id = info.has_id().then(|| info.id());
    let built = match column {
        Type::PrimitiveType { physical_type, type_length, scale, precision, .. } => {
            let builder = Type::primitive_type_builder(name, *physical_type).with_repetition(info.repetition());
            let builder = builder.with_converted_type(converted).with_logical_type(logical).with_id(id);
            builder.with_length(*type_length).with_scale(*scale).with_precision(*precision).build()?
        }
        Type::GroupType { fields, .. } => {
            let mut builder = Type::group_type_builder(name).with_fields(fields.clone());
            if info.has_repetition() {
                builder = builder.with_repetition(info.repetition());
            }
            builder.with_converted_type(converted).with_logical_type(logical).with_id(id).build()?
        }
    };
    Ok(built.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::Type as PhysicalType;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::printer::print_schema;

    use super::*;

    #[test]
    fn a_column_keeps_all_but_its_name() {
        let text = "message schema {
  REQUIRED INT32 a (INTEGER(8,false));
  OPTIONAL BYTE_ARRAY a (STRING);
  OPTIONAL FIXED_LEN_BYTE_ARRAY (5) a (DECIMAL(11,3));
  OPTIONAL INT64 a (TIMESTAMP(NANOS,true));
  REPEATED INT96 a;
  REQUIRED BYTE_ARRAY a (UTF8);
  OPTIONAL GROUP a (LIST) {
    REPEATED GROUP list {
      OPTIONAL GROUP element {
        REQUIRED DOUBLE a;
      }
    }
  }
}
";
        let schema = parse_message_type(text).unwrap();
        let printed = |schema: &Type| {
            let mut text = Vec::new();
            print_schema(&mut text, schema);
            String::from_utf8(text).unwrap()
        };
        let fields: Vec<TypePtr> = schema.get_fields().iter().map(|field| named(field, "b").unwrap()).collect();
        for (before, after) in schema.get_fields().iter().zip(&fields) {
            assert_eq!(named(after, "a").unwrap(), *before);
        }
        let renamed = Type::group_type_builder("schema").with_fields(fields).build().unwrap();
        let before = printed(&schema);
        let within = "REQUIRED DOUBLE a;";
        let expected =
            before.replace(" a ", " b ").replace(" a;", " b;").replace(&within.replace(" a;", " b;"), within);
        assert_eq!(printed(&Arc::new(renamed)), expected);
        // The parser of the text knows no ids.
        let numbered = Type::primitive_type_builder("a", PhysicalType::INT32).with_id(Some(7)).build().unwrap();
        let found = named(&numbered, "b").unwrap();
        assert_eq!((found.name(), found.get_basic_info().id()), ("b", 7));
    }
}

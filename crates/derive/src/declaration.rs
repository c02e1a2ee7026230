//! What a struct and its attributes say of a table.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, GenericParam, Generics, Ident, LitStr, Result, Type,
};

use crate::description::{first_paragraph, of_column};

/// A table.
pub(crate) struct Declaration {
    /// The struct.
    pub row: Ident,
    /// Its lifetimes.
    pub generics: Generics,
    /// The name of the table.
    pub name: String,
    /// What its rows are.
    pub description: String,
    /// Whether its files are read once and removed.
    pub is_scratch: bool,
    /// Its fields, in order.
    pub fields: Vec<FieldColumns>,
}

/// A field.
pub(crate) struct FieldColumns {
    /// Its name.
    pub field: Ident,
    /// Its type.
    pub values: Type,
    /// Its columns.
    pub columns: DeclaredColumns,
}

/// The columns of a field.
pub(crate) enum DeclaredColumns {
    /// One column.
    One(DeclaredColumn),
    /// The elements of an array: the name and the description of each.
    Elements(Vec<(String, String)>),
}

/// A column.
pub(crate) struct DeclaredColumn {
    /// Its name.
    pub name: String,
    /// What its values mean.
    pub description: String,
    /// How it is written: some of [`FLAGS`].
    pub flags: Vec<Ident>,
    /// The length of its byte strings in a file without rows.
    pub width: Option<TokenStream>,
}

/// What can be said of how a column is written; they are fields of
/// `nigh_tables::tables::ColumnSpec`.
const FLAGS: [&str; 6] = ["sorted", "searched", "unique", "ascending", "random", "unordered"];

impl Declaration {
    /// Reads a struct.
    pub(crate) fn of(input: &DeriveInput) -> Result<Declaration> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.ident.span(), "a row of a table is a struct"));
        };
        let Fields::Named(fields) = &data.fields else {
            return Err(Error::new(input.ident.span(), "the fields of a row have the names of the columns"));
        };
        for parameter in &input.generics.params {
            if !matches!(parameter, GenericParam::Lifetime(_)) {
                return Err(Error::new(parameter.span(), "a row has no parameters except lifetimes"));
            }
        }
        let (mut name, mut is_scratch) = (None, false);
        each_meta(&input.attrs, "table", |meta| {
            if meta.path.is_ident("name") {
                name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("scratch") {
                is_scratch = true;
            } else {
                return Err(meta.error("a table has `name` and `scratch`"));
            }
            Ok(())
        })?;
        let missing = || Error::new(input.ident.span(), "the table has no name: #[table(name = \"...\")]");
        let declaration = Declaration {
            row: input.ident.clone(),
            generics: input.generics.clone(),
            name: name.ok_or_else(missing)?,
            description: first_paragraph(&input.attrs),
            is_scratch,
            fields: fields.named.iter().map(FieldColumns::of).collect::<Result<_>>()?,
        };
        declaration.check()?;
        Ok(declaration)
    }

    /// Checks what is about several fields.
    fn check(&self) -> Result<()> {
        let (mut names, mut sorted) = (BTreeSet::new(), false);
        for FieldColumns { field, columns, .. } in &self.fields {
            let of_field: Vec<&str> = match columns {
                DeclaredColumns::One(column) => vec![&column.name],
                DeclaredColumns::Elements(elements) => elements.iter().map(|(name, _)| name.as_str()).collect(),
            };
            for name in of_field {
                if !names.insert(name) {
                    return Err(Error::new(field.span(), format!("a second column `{name}`")));
                }
            }
            if let DeclaredColumns::One(column) = columns
                && let Some(flag) = column.flags.iter().find(|flag| *flag == "sorted")
                && std::mem::replace(&mut sorted, true)
            {
                return Err(Error::new(flag.span(), "a second sorted column: rows ascend by one"));
            }
        }
        Ok(())
    }
}

impl FieldColumns {
    fn of(field: &Field) -> Result<FieldColumns> {
        let ident = field.ident.clone().ok_or_else(|| Error::new(field.span(), "a column has a name"))?;
        let attribute = |name| field.attrs.iter().find(|attribute| attribute.path().is_ident(name));
        let columns = match (attribute("column"), attribute("columns")) {
            (Some(second), Some(_)) => return Err(Error::new(second.span(), "a field has `column` or `columns`")),
            (_, None) => DeclaredColumns::One(DeclaredColumn::of(&ident, &field.attrs)?),
            (None, Some(_)) => DeclaredColumns::Elements(elements(&field.attrs)?),
        };
        Ok(FieldColumns { field: ident, values: field.ty.clone(), columns })
    }
}

/// The names and descriptions of the elements of an array.
fn elements(attributes: &[Attribute]) -> Result<Vec<(String, String)>> {
    let mut elements = Vec::new();
    each_meta(attributes, "columns", |meta| {
        let name = meta.path.require_ident()?.to_string();
        elements.push((name, meta.value()?.parse::<LitStr>()?.value()));
        Ok(())
    })?;
    Ok(elements)
}

impl DeclaredColumn {
    fn of(field: &Ident, attributes: &[Attribute]) -> Result<DeclaredColumn> {
        let (name, description) = (field.unraw().to_string(), of_column(&first_paragraph(attributes)));
        let mut column = DeclaredColumn { name, description, flags: Vec::new(), width: None };
        each_meta(attributes, "column", |meta| {
            let key = meta.path.require_ident()?;
            if FLAGS.iter().any(|flag| key == flag) {
                if column.flags.contains(key) {
                    return Err(meta.error("said twice"));
                }
                column.flags.push(key.clone());
            } else if key == "name" {
                column.name = meta.value()?.parse::<LitStr>()?.value();
            } else if key == "description" {
                column.description = meta.value()?.parse::<LitStr>()?.value();
            } else if key == "width" {
                column.width = Some(meta.value()?.parse::<Expr>()?.into_token_stream());
            } else {
                let known = format!("a column has `name`, `description`, `width`, `{}`", FLAGS.join("`, `"));
                return Err(meta.error(known));
            }
            Ok(())
        })?;
        Ok(column)
    }
}

/// Calls `take` with everything in the attributes of this name.
fn each_meta(attributes: &[Attribute], name: &str, mut take: impl FnMut(&ParseNestedMeta) -> Result<()>) -> Result<()> {
    let mut named = attributes.iter().filter(|attribute| attribute.path().is_ident(name));
    named.try_for_each(|attribute| attribute.parse_nested_meta(|meta| take(&meta)))
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::*;

    fn declaration(text: &str) -> Result<Declaration> {
        Declaration::of(&parse_str(text).unwrap())
    }

    fn refused(text: &str) -> String {
        declaration(text).err().unwrap().to_string()
    }

    #[test]
    fn a_struct_is_a_table_and_its_fields_are_columns() {
        let table = declaration(
            r#"
            /// One row for each page.
            ///
            /// For readers of the code.
            #[table(name = "pages", scratch)]
            struct PageRow<'a> {
                /// Document id.
                #[column(sorted, ascending)]
                doc: i64,
                /// The pair.
                #[columns(host_a = "one host", host_b = "the other")]
                hosts: [&'a str; 2],
                #[column(name = "of", width = 6 * 8, description = "Jaccard similarity")]
                whole: &'a [u8],
            }"#,
        )
        .unwrap();
        assert_eq!((table.name.as_str(), table.is_scratch), ("pages", true));
        assert_eq!(table.description, "One row for each page.");
        let [
            FieldColumns { columns: DeclaredColumns::One(doc), .. },
            FieldColumns { columns: DeclaredColumns::Elements(hosts), .. },
            FieldColumns { columns: DeclaredColumns::One(whole), .. },
        ] = &table.fields[..]
        else {
            panic!("three fields")
        };
        assert_eq!((doc.name.as_str(), doc.description.as_str()), ("doc", "document id"));
        assert_eq!(doc.flags, ["sorted", "ascending"]);
        assert_eq!(*hosts, [("host_a".into(), "one host".into()), ("host_b".into(), "the other".into())]);
        assert_eq!((whole.name.as_str(), whole.description.as_str()), ("of", "Jaccard similarity"));
        assert!(whole.width.is_some() && doc.width.is_none());
    }

    #[test]
    fn mistakes_are_named() {
        let row = |fields: &str| refused(&format!("#[table(name = \"a\")] struct A {{ {fields} }}"));
        assert!(row("#[column(sort)] a: i64").contains("`sorted`"));
        assert!(row("#[column(sorted = true)] a: i64").contains("expected"));
        assert_eq!(row("#[column(unique, unique)] a: i64"), "said twice");
        assert!(row("#[column(sorted)] a: i64, #[column(sorted)] b: i64").contains("a second sorted column"));
        assert_eq!(row("a: i64, #[column(name = \"a\")] b: i64"), "a second column `a`");
        assert!(row("#[column(unique)] #[columns(a = \"\")] b: [i64; 1]").contains("`column` or `columns`"));
        assert!(refused("struct A { a: i64 }").contains("no name"));
        assert!(refused("#[table(name = \"a\", sorted_by = \"a\")] struct A { a: i64 }").contains("`scratch`"));
        assert!(refused("#[table(name = \"a\")] struct A(i64);").contains("names of the columns"));
        assert!(refused("#[table(name = \"a\")] enum A { B }").contains("a struct"));
        assert!(refused("#[table(name = \"a\")] struct A<T> { a: T }").contains("lifetimes"));
    }
}

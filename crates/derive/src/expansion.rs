//! The code of a table.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::GenericParam;

use crate::declaration::{Declaration, DeclaredColumn, DeclaredColumns, FieldColumns};

/// The implementation of `Row`: a constant for the columns, and one call for each of them.
pub(crate) fn row(table: &Declaration) -> TokenStream {
    let Declaration { row, generics, name, description, is_scratch, fields } = table;
    let (with_parameters, parameters, conditions) = generics.split_for_impl();
    let lifetimes = generics.params.iter().filter(|parameter| matches!(parameter, GenericParam::Lifetime(_)));
    let borrows_nothing = lifetimes.map(|_| quote!('static));
    let specs = fields.iter().flat_map(specs);
    let builders: Vec<_> = (0..fields.iter().map(width).sum()).map(|number| format_ident!("column{number}")).collect();
    let mut rest = &builders[..];
    let appends = fields.iter().flat_map(|field| {
        let (of_field, others) = rest.split_at(width(field));
        rest = others;
        appends(field, of_field)
    });
    let appends: Vec<TokenStream> = appends.collect();
    quote! {
        impl #with_parameters ::nigh_tables::tables::Row for #row #parameters #conditions {
            type Table = #row<#(#borrows_nothing),*>;

            const SPEC: &'static ::nigh_tables::tables::TableSpec = &::nigh_tables::tables::TableSpec {
                name: #name,
                description: #description,
                is_scratch: #is_scratch,
                columns: &[#(#specs),*],
            };

            fn append(&self, columns: &mut [::nigh_tables::tables::ColumnBuilder]) {
                let [#(#builders),*] = columns else { unreachable!("a table has a builder for each column") };
                #(#appends)*
            }
        }
    }
}

/// The number of columns of a field.
fn width(field: &FieldColumns) -> usize {
    match &field.columns {
        DeclaredColumns::One(_) => 1,
        DeclaredColumns::Elements(elements) => elements.len(),
    }
}

/// The columns of a field, as values of `ColumnSpec`.
fn specs(FieldColumns { values, columns, .. }: &FieldColumns) -> Vec<TokenStream> {
    match columns {
        DeclaredColumns::One(DeclaredColumn { name, description, flags, width }) => {
            let width = width.iter().map(|width| quote!(values: ::nigh_tables::tables::ValueType::FixedBytes(#width),));
            vec![quote! {
                ::nigh_tables::tables::ColumnSpec {
                    #(#flags: true,)*
                    #(#width)*
                    ..::nigh_tables::tables::ColumnSpec::of::<#values>(#name, #description)
                }
            }]
        }
        DeclaredColumns::Elements(elements) => {
            let count = elements.len();
            let spec = |(name, description): &(String, String)| quote!(::nigh_tables::tables::ColumnSpec::of_element::<#values>(#name, #description, #count));
            elements.iter().map(spec).collect()
        }
    }
}

/// The calls that append the values of a field.
fn appends(FieldColumns { field, columns, .. }: &FieldColumns, builders: &[syn::Ident]) -> Vec<TokenStream> {
    match columns {
        DeclaredColumns::One(_) => vec![quote!(#(::nigh_tables::tables::Value::append(&self.#field, #builders);)*)],
        DeclaredColumns::Elements(_) => {
            let places = 0..builders.len();
            let append =
                |(place, builder)| quote!(::nigh_tables::tables::Elements::append(&self.#field, #place, #builder););
            places.zip(builders).map(append).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::*;

    #[test]
    fn each_column_is_appended_to_its_builder() {
        let text = "#[table(name = \"a\")] struct A<'a> { a: &'a str, #[columns(b = \"\", c = \"\")] d: [i64; 2] }";
        let code = row(&Declaration::of(&parse_str(text).unwrap()).unwrap()).to_string().replace(' ', "");
        assert!(code.contains("impl<'a>::nigh_tables::tables::RowforA<'a>"), "{code}");
        assert!(code.contains("typeTable=A<'static>;"), "{code}");
        assert!(code.contains("Value::append(&self.a,column0);"), "{code}");
        assert!(code.contains("Elements::append(&self.d,0usize,column1);"), "{code}");
        assert!(code.contains("Elements::append(&self.d,1usize,column2);"), "{code}");
    }

    #[test]
    fn a_table_without_lifetimes_is_its_own_row() {
        let text = "#[table(name = \"a\")] struct A { a: i64 }";
        let code = row(&Declaration::of(&parse_str(text).unwrap()).unwrap()).to_string().replace(' ', "");
        assert!(code.contains("typeTable=A<>;"), "{code}");
    }
}

//! How the columns of a table are encoded, compressed and filtered: what they declare, as settings
//! of the Parquet writer.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::groups::{PAGE, ROW_GROUP};
use crate::tables::columns::TableSpec;

/// How often a Bloom filter may say that a value is in a row group that lacks it. Filters have
/// powers of two in size: a full row group of distinct values then has 128 KiB, a byte for each;
/// with 0.02 it would have twice as many.
const FALSE_POSITIVES: f64 = 0.03;
/// The rows of a Parquet page of plain values, which are read from the file as they are: a page is
/// one read.
const PLAIN_PAGE: usize = 20_000;
/// Those of a small row group, whose pages cost less.
const SMALL_PAGE: usize = 512;

/// How the columns of a table are encoded and compressed: what they declare as settings of the
/// Parquet writer.
pub(super) fn properties(table: &TableSpec) -> WriterPropertiesBuilder {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).expect("zstd has a level 3"));
    let mut properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_data_page_row_count_limit(PAGE)
        .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")));
    if table.is_scratch {
        properties = properties.set_compression(Compression::LZ4_RAW).set_statistics_enabled(EnabledStatistics::None);
    }
    for (place, column) in (0..).zip(table.columns) {
        let path = || ColumnPath::from(column.name);
        if column.unique {
            properties = properties.set_column_dictionary_enabled(path(), false);
        }
        if column.random {
            properties = properties.set_column_data_page_row_count_limit(path(), PLAIN_PAGE);
        }
        if column.unordered {
            properties = properties.set_column_statistics_enabled(path(), EnabledStatistics::None);
        }
        if column.searched {
            // A filter begins with room for a full row group of distinct values, and is folded to
            // the values that it got.
            properties = properties.set_column_bloom_filter_fpp(path(), FALSE_POSITIVES);
        }
        if column.sorted {
            let ascending = SortingColumn { column_idx: place, descending: false, nulls_first: false };
            properties = properties.set_sorting_columns(Some(vec![ascending]));
        }
    }
    numbers(properties, table)
}

/// The same for a row group of few rows: nothing that has to be set up.
pub(super) fn small_properties(table: &TableSpec) -> WriterProperties {
    let properties = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(SMALL_PAGE)
        .set_write_batch_size(SMALL_PAGE);
    numbers(properties, table).build()
}

/// How columns of numbers and hashes are encoded in any row group.
fn numbers(mut properties: WriterPropertiesBuilder, table: &TableSpec) -> WriterPropertiesBuilder {
    for column in table.columns {
        let path = || ColumnPath::from(column.name);
        if column.ascending {
            properties = properties
                .set_column_dictionary_enabled(path(), false)
                .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
        }
        if column.random || column.ascending {
            properties = properties.set_column_compression(path(), Compression::UNCOMPRESSED);
        }
    }
    properties
}

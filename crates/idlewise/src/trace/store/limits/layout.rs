//! The structures of Parquet, as far as they are read: number, name and type of every field, and whether it must be there.

use super::thrift::Kind::{Binary, Bool, Double, I8, I16, I32, I64, List, Struct};
use super::thrift::{Field, Kind, Structure};

const fn must(number: i16, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, required: true }
}

const fn may(number: i16, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, required: false }
}

/// The footer.
pub static FILE: Structure = Structure {
    name: "FileMetaData",
    fields: &[
        must(1, "version", I32),
        must(2, "schema", List(&Struct(&SCHEMA_ELEMENT))),
        must(3, "num_rows", I64),
        must(4, "row_groups", List(&Struct(&ROW_GROUP))),
        may(5, "key_value_metadata", List(&Struct(&KEY_VALUE))),
        may(6, "created_by", Binary),
        may(7, "column_orders", List(&Struct(&COLUMN_ORDER))),
    ],
};

static SCHEMA_ELEMENT: Structure = Structure {
    name: "SchemaElement",
    fields: &[
        may(1, "type", I32),
        may(2, "type_length", I32),
        may(3, "repetition_type", I32),
        must(4, "name", Binary),
        may(5, "num_children", I32),
        may(6, "converted_type", I32),
        may(7, "scale", I32),
        may(8, "precision", I32),
        may(9, "field_id", I32),
        may(10, "logicalType", Struct(&LOGICAL_TYPE)),
    ],
};

static EMPTY: Structure = Structure { name: "an empty structure", fields: &[] };

static LOGICAL_TYPE: Structure = Structure {
    name: "LogicalType",
    fields: &[
        may(1, "STRING", Struct(&EMPTY)),
        may(2, "MAP", Struct(&EMPTY)),
        may(3, "LIST", Struct(&EMPTY)),
        may(4, "ENUM", Struct(&EMPTY)),
        may(5, "DECIMAL", Struct(&DECIMAL)),
        may(6, "DATE", Struct(&EMPTY)),
        may(7, "TIME", Struct(&TIME)),
        may(8, "TIMESTAMP", Struct(&TIME)),
        may(10, "INTEGER", Struct(&INTEGER)),
        may(11, "UNKNOWN", Struct(&EMPTY)),
        may(12, "JSON", Struct(&EMPTY)),
        may(13, "BSON", Struct(&EMPTY)),
        may(14, "UUID", Struct(&EMPTY)),
        may(15, "FLOAT16", Struct(&EMPTY)),
        may(16, "VARIANT", Struct(&VARIANT)),
        may(17, "GEOMETRY", Struct(&GEOGRAPHY)),
        may(18, "GEOGRAPHY", Struct(&GEOGRAPHY)),
    ],
};

static DECIMAL: Structure =
    Structure { name: "DecimalType", fields: &[must(1, "scale", I32), must(2, "precision", I32)] };

static TIME: Structure =
    Structure { name: "TimeType", fields: &[must(1, "isAdjustedToUTC", Bool), must(2, "unit", Struct(&TIME_UNIT))] };

static TIME_UNIT: Structure = Structure {
    name: "TimeUnit",
    fields: &[may(1, "MILLIS", Struct(&EMPTY)), may(2, "MICROS", Struct(&EMPTY)), may(3, "NANOS", Struct(&EMPTY))],
};

static INTEGER: Structure =
    Structure { name: "IntType", fields: &[must(1, "bitWidth", I8), must(2, "isSigned", Bool)] };

static VARIANT: Structure = Structure { name: "VariantType", fields: &[may(1, "specification_version", I8)] };

static GEOGRAPHY: Structure =
    Structure { name: "GeographyType", fields: &[may(1, "crs", Binary), may(2, "algorithm", I32)] };

static ROW_GROUP: Structure = Structure {
    name: "RowGroup",
    fields: &[
        must(1, "columns", List(&Struct(&COLUMN_CHUNK))),
        must(2, "total_byte_size", I64),
        must(3, "num_rows", I64),
        may(4, "sorting_columns", List(&Struct(&SORTING_COLUMN))),
        may(5, "file_offset", I64),
        may(6, "total_compressed_size", I64),
        may(7, "ordinal", I16),
    ],
};

static SORTING_COLUMN: Structure = Structure {
    name: "SortingColumn",
    fields: &[must(1, "column_idx", I32), must(2, "descending", Bool), must(3, "nulls_first", Bool)],
};

static COLUMN_CHUNK: Structure = Structure {
    name: "ColumnChunk",
    fields: &[
        may(1, "file_path", Binary),
        must(2, "file_offset", I64),
        must(3, "meta_data", Struct(&COLUMN_META_DATA)),
        may(4, "offset_index_offset", I64),
        may(5, "offset_index_length", I32),
        may(6, "column_index_offset", I64),
        may(7, "column_index_length", I32),
    ],
};

static COLUMN_META_DATA: Structure = Structure {
    name: "ColumnMetaData",
    fields: &[
        must(1, "type", I32),
        must(2, "encodings", List(&I32)),
        must(3, "path_in_schema", List(&Binary)),
        must(4, "codec", I32),
        must(5, "num_values", I64),
        must(6, "total_uncompressed_size", I64),
        must(7, "total_compressed_size", I64),
        may(8, "key_value_metadata", List(&Struct(&KEY_VALUE))),
        must(9, "data_page_offset", I64),
        may(10, "index_page_offset", I64),
        may(11, "dictionary_page_offset", I64),
        may(12, "statistics", Struct(&STATISTICS)),
        may(13, "encoding_stats", List(&Struct(&PAGE_ENCODING_STATS))),
        may(14, "bloom_filter_offset", I64),
        may(15, "bloom_filter_length", I32),
        may(16, "size_statistics", Struct(&SIZE_STATISTICS)),
        may(17, "geospatial_statistics", Struct(&GEOSPATIAL_STATISTICS)),
    ],
};

static KEY_VALUE: Structure =
    Structure { name: "KeyValue", fields: &[must(1, "key", Binary), may(2, "value", Binary)] };

static COLUMN_ORDER: Structure = Structure {
    name: "ColumnOrder",
    fields: &[may(1, "TYPE_ORDER", Struct(&EMPTY)), may(2, "IEEE_754_TOTAL_ORDER", Struct(&EMPTY))],
};

static STATISTICS: Structure = Structure {
    name: "Statistics",
    fields: &[
        may(1, "max", Binary),
        may(2, "min", Binary),
        may(3, "null_count", I64),
        may(4, "distinct_count", I64),
        may(5, "max_value", Binary),
        may(6, "min_value", Binary),
        may(7, "is_max_value_exact", Bool),
        may(8, "is_min_value_exact", Bool),
    ],
};

static PAGE_ENCODING_STATS: Structure = Structure {
    name: "PageEncodingStats",
    fields: &[must(1, "page_type", I32), must(2, "encoding", I32), must(3, "count", I32)],
};

static SIZE_STATISTICS: Structure = Structure {
    name: "SizeStatistics",
    fields: &[
        may(1, "unencoded_byte_array_data_bytes", I64),
        may(2, "repetition_level_histogram", List(&I64)),
        may(3, "definition_level_histogram", List(&I64)),
    ],
};

static GEOSPATIAL_STATISTICS: Structure = Structure {
    name: "GeospatialStatistics",
    fields: &[may(1, "bbox", Struct(&BOUNDING_BOX)), may(2, "geospatial_types", List(&I32))],
};

static BOUNDING_BOX: Structure = Structure {
    name: "BoundingBox",
    fields: &[
        must(1, "xmin", Double),
        must(2, "xmax", Double),
        must(3, "ymin", Double),
        must(4, "ymax", Double),
        may(5, "zmin", Double),
        may(6, "zmax", Double),
        may(7, "mmin", Double),
        may(8, "mmax", Double),
    ],
};

/// What stands before each page.
pub static PAGE: Structure = Structure {
    name: "PageHeader",
    fields: &[
        must(1, "type", I32),
        must(2, "uncompressed_page_size", I32),
        must(3, "compressed_page_size", I32),
        may(4, "crc", I32),
        may(5, "data_page_header", Struct(&DATA_PAGE)),
        may(6, "index_page_header", Struct(&EMPTY)),
        may(7, "dictionary_page_header", Struct(&DICTIONARY_PAGE)),
        may(8, "data_page_header_v2", Struct(&DATA_PAGE_V2)),
    ],
};

static DATA_PAGE: Structure = Structure {
    name: "DataPageHeader",
    fields: &[
        must(1, "num_values", I32),
        must(2, "encoding", I32),
        must(3, "definition_level_encoding", I32),
        must(4, "repetition_level_encoding", I32),
        may(5, "statistics", Struct(&STATISTICS)),
    ],
};

static DICTIONARY_PAGE: Structure = Structure {
    name: "DictionaryPageHeader",
    fields: &[must(1, "num_values", I32), must(2, "encoding", I32), may(3, "is_sorted", Bool)],
};

static DATA_PAGE_V2: Structure = Structure {
    name: "DataPageHeaderV2",
    fields: &[
        must(1, "num_values", I32),
        must(2, "num_nulls", I32),
        must(3, "num_rows", I32),
        must(4, "encoding", I32),
        must(5, "definition_levels_byte_length", I32),
        must(6, "repetition_levels_byte_length", I32),
        may(7, "is_compressed", Bool),
        may(8, "statistics", Struct(&STATISTICS)),
    ],
};

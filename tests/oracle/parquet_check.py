"""Holds what is written as Parquet against pyarrow's reader, and writes the same table in pyarrow's own ways.

check FILE             prints the requests as lines of JSON
write FILE FOLDER      writes the table of FILE with other types, encodings and compressions
"""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq


def check(path):
    table = pq.read_table(path)
    units = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    rows = table.to_pylist()
    print(json.dumps({"metadata": units, "types": [str(field.type) for field in table.schema], "rows": rows}))


def write(path, folder):
    table = pq.read_table(path)
    kinds = {
        "plain": (table, {"use_dictionary": False, "compression": "none"}),
        "snappy": (table, {"compression": "snappy", "data_page_version": "2.0"}),
        "gzip": (table, {"compression": "gzip", "row_group_size": 3}),
        "lz4": (table, {"compression": "lz4"}),
        "split": (table, {"use_dictionary": False, "column_encoding": {"arrival": "BYTE_STREAM_SPLIT"}}),
    }
    large = table
    for name in ["op", "volume"]:
        column = large.column(name).dictionary_encode()
        large = large.set_column(large.schema.get_field_index(name), name, column)
    kinds["dictionary"] = (large, {})
    floats = table.set_column(3, "offset", table.column("offset").cast(pa.float64()))
    stamps = floats.set_column(0, "arrival", table.column("arrival").cast(pa.timestamp("ns")))
    kinds["types"] = (stamps.set_column(4, "length", table.column("length").cast(pa.int16())), {"version": "2.6"})
    kinds["nullable"] = (table.append_column("more", pa.array([[1, 2]] * len(table))), {})
    for name, (kind, options) in kinds.items():
        pq.write_table(kind, f"{folder}/{name}.parquet", **options)


globals()[sys.argv[1]](*sys.argv[2:])

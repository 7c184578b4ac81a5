"""Tables in and out, by Arrow's interface."""

import subprocess
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import idlewise as iw


@pytest.fixture(scope="module")
def frame(made):
    return pl.DataFrame(iw.scan(made))


def test_requests_of_a_file_come_as_columns(frame):
    assert frame.columns == ["arrival", "issue", "completion", "offset", "length", "op", "volume"]
    assert frame.schema["arrival"] == pl.Duration("ns")
    assert frame.height == 3000 and frame["arrival"][0].total_seconds() == 0
    assert set(frame["op"]) == {"read", "write"}


def intervals(times):
    """As DuckDB gives them."""
    return pa.array([pa.MonthDayNano([0, 0, time]) for time in times.cast(pl.Int64).to_list()])


@pytest.mark.parametrize(
    "as_table",
    [
        lambda frame: frame,
        lambda frame: frame.with_columns(pl.col("volume").cast(pl.Categorical)),
        lambda frame: frame.with_columns(pl.col("arrival", "completion").cast(pl.Int64)),
        lambda frame: frame.to_arrow(),
        lambda frame: pa.RecordBatchReader.from_batches(frame.to_arrow().schema, frame.to_arrow().to_batches(100)),
        lambda frame: frame.to_arrow().to_pandas(),
        lambda frame: frame.drop("issue").to_pandas(),
        lambda frame: iw.scan(frame),
        lambda frame: frame.drop("issue").to_arrow().set_column(0, "arrival", intervals(frame["arrival"])),
    ],
    ids=["polars", "categorical", "int64", "pyarrow", "reader", "pandas", "pandas-of-polars", "ours", "intervals"],
)
def test_any_table_gives_what_the_file_gives(frame, idle, as_table):
    ours = iw.scan(as_table(frame)).idle()
    assert pl.DataFrame(ours).equals(pl.DataFrame(idle))
    assert ours.by_volume().rows() == idle.by_volume().rows()


def test_columns_and_units(frame, made, idle):
    ours = pd.DataFrame(
        {
            "ts": frame["arrival"].cast(pl.Int64).to_numpy() / 1e9,
            "rt": (frame["completion"] - frame["arrival"]).cast(pl.Int64).to_numpy() / 1e9,
            "offset": frame["offset"].to_numpy(),
            "bytes": frame["length"].to_numpy(),
            "op": frame["op"].to_list(),
            "volume": frame["volume"].to_list(),
        }
    )
    trace = iw.scan(ours, columns={"arrival": "ts", "response": "rt", "length": "bytes"}, unit="s")
    assert trace.idle().by_volume().rows() == idle.by_volume().rows()
    only, of_file = iw.scan(frame, volumes="*_1").idle(), iw.scan(made, volumes="*_1").idle()
    assert only.volumes == ["host_1"] and pl.DataFrame(only).equals(pl.DataFrame(of_file))
    with pytest.raises(iw.IdlewiseError, match="no volume 'x'"):
        iw.scan(frame, volumes="x").idle()


def test_what_is_no_trace_is_said_so(frame):
    with pytest.raises(iw.IdlewiseError, match="row 1 arrives before the one above it"):
        iw.scan(frame.reverse()).idle()
    with pytest.raises(iw.IdlewiseError, match="no column 'arrival' among"):
        iw.scan(frame.drop("arrival")).idle()
    with pytest.raises(iw.IdlewiseError, match="there is no column 'nothing'"):
        iw.scan(frame, columns={"arrival": "nothing"}).idle()
    with pytest.raises(iw.IdlewiseError, match="row 0: op is 'x'"):
        iw.scan(frame.with_columns(op=pl.lit("x"))).idle()
    with pytest.raises(iw.IdlewiseError, match="is null"):
        iw.scan(frame.with_columns(offset=pl.lit(None, pl.Int64))).idle()
    with pytest.raises(iw.IdlewiseError, match="no request"):
        iw.scan(frame.head(0)).idle()
    with pytest.raises(iw.IdlewiseError, match="steps of 1"):
        iw.scan(frame.with_columns(pl.col("arrival").dt.total_seconds()), unit="s").idle()


def test_an_exception_of_the_stream_surfaces(frame):
    def batches():
        yield from frame.drop("issue").to_arrow().to_batches(1000)
        raise RuntimeError("the tape broke")

    table = frame.drop("issue").to_arrow()
    with pytest.raises(ValueError, match="the tape broke"):
        iw.scan(pa.RecordBatchReader.from_batches(table.schema, batches())).idle()


def test_tables_go_out_without_a_copy(idle):
    table = idle.by_volume()
    addresses = [pa.table(table).column("requests").chunk(0).buffers()[1].address for _ in range(2)]
    assert addresses[0] == addresses[1]
    assert pl.DataFrame(table)["requests"].to_list() == table["requests"]
    assert pd.DataFrame.from_arrow(table)["volume"].tolist() == table["volume"]
    assert pa.schema(table).names == table.column_names


def test_intervals_add_up(idle):
    frame = pl.DataFrame(idle)
    assert frame.height == idle.intervals
    assert frame["length"].cast(pl.Int64).sum() == idle.idle_ns
    ends = pl.DataFrame(idle["host_0"]).select(pl.col("begin") + pl.col("length"))["begin"].cast(pl.Int64)
    assert idle["host_0"].begin_ns < ends.max() < idle["host_0"].end_ns


def test_neither_polars_nor_pyarrow_nor_numpy_is_needed(made):
    script = f"""
import sys
for name in ("polars", "pyarrow", "pandas", "numpy"):
    sys.modules[name] = None
import time
began = time.perf_counter()
import idlewise as iw
assert time.perf_counter() - began < 0.2
idle = iw.scan({str(made)!r}).idle()
table = iw.tune_each(idle, mean_slowdown="500us", max_slowdown="20ms")
print(table.to_dict()["volume"], len(table._repr_html_()) > 100)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "['host_0', 'host_1'] True", done.stderr

"""Columns of tables: each kind is read for what it is, or refused."""

import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import idlewise as iw

MS = 1_000_000


def table(**columns):
    """Three requests, 10 ms apart."""
    usual = {
        "arrival": pa.array([0, 10 * MS, 20 * MS]),
        "offset": pa.array([0, 4096, 8192]),
        "length": pa.array([4096] * 3),
        "op": pa.array(["read"] * 3),
        "volume": pa.array(["a"] * 3),
    }
    return pa.table(usual | columns)


def arrivals(column, **scan):
    """As they are read."""
    requests = pl.DataFrame(iw.scan(table(arrival=column), **scan))
    return requests["arrival"].cast(pl.Int64).to_list()


def completions(column, **scan):
    requests = pl.DataFrame(iw.scan(table(completion=column), **scan))
    return requests["completion"].cast(pl.Int64).to_list()


@pytest.mark.parametrize("of", [pl.DataFrame, pa.table, pd.DataFrame], ids=["polars", "pyarrow", "pandas"])
def test_a_column_of_nothing_but_nulls_says_nothing(of):
    columns = table().to_pydict() | {"completion": [None] * 3}
    assert pl.DataFrame(iw.scan(of(columns)))["completion"].to_list() == [None] * 3
    with pytest.raises(ValueError, match="column 'op' has nulls"):
        iw.scan(of(columns | {"op": [None] * 3})).idle()


@pytest.mark.parametrize("of", [pl.DataFrame, pa.table, pd.DataFrame], ids=["polars", "pyarrow", "pandas"])
@pytest.mark.parametrize("name", ["completion", "response", "issue"])
def test_nan_is_not_known(of, name):
    columns = table().to_pydict() | {name: np.array([math.nan, 15e6, math.nan])}
    requests = pl.DataFrame(iw.scan(of(columns)))
    got = requests["issue" if name == "issue" else "completion"].cast(pl.Int64).to_list()
    assert got == [None, 25 * MS if name == "response" else 15 * MS, None]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, -1.0])
def test_an_arrival_is_a_number_within_range(value):
    requests = table(arrival=pa.array([0.0, 1.0, 2.0]))
    second = table(arrival=pa.array([3.0, value, 5.0]))
    with pytest.raises(ValueError, match="row 4: column 'arrival' is"):
        iw.scan(pa.concat_tables([requests, second])).idle()


@pytest.mark.parametrize("name", ["completion", "response", "issue", "offset", "length"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, 2.0**64, -(2.0**70)])
def test_what_no_column_can_hold_is_an_error(name, value):
    why = "more than 64 bits hold" if value > 0 else "no number from 0 on"
    with pytest.raises(ValueError, match=f"row 1: column '{name}' is .*{why}"):
        iw.scan(table(**{name: pa.array([0.0, value, 0.0])})).idle()


def test_whole_numbers_are_within_range():
    with pytest.raises(ValueError, match="row 2: column 'arrival' is 18446744074, which is more than 64 bits hold"):
        iw.Partial().push(table(arrival=pa.array([0, 1, 18_446_744_074])), unit="s")
    with pytest.raises(ValueError, match="row 1: column 'response' is -5, which is no number from 0 on"):
        iw.scan(table(response=pa.array([0, -5, 0]))).idle()


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(20, 0)], ids=str)
def test_ticks_of_windows_clock_are_those_of_the_file(kind, tmp_path):
    ticks, took = [128166410318060999, 128166410319060999, 128166410329060999], [10, 20, 30]
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{at},a,0,Read,0,4096,{response}\n" for at, response in zip(ticks, took)))
    requests = table(arrival=pa.array(ticks).cast(kind), response=pa.array(took))
    read = iw.scan(requests, unit="100ns").idle()
    assert pl.DataFrame(read)["length"].to_list() == pl.DataFrame(iw.scan(path).idle())["length"].to_list()
    assert read.origin_ns == 100 * ticks[0]


def test_errors_name_columns_as_the_table_does():
    requests = table(arrival=pa.array([0, 1, -2])).rename_columns({"arrival": "when"})
    with pytest.raises(ValueError, match="row 2: column 'when' is -2, which"):
        iw.scan(requests, columns={"arrival": "when"}).idle()


def test_sizes_are_whole():
    assert iw.scan(table(offset=pa.array([0.0, 4096.0, 8192.0]))).idle().volumes == ["a"]
    for half in [pa.array([0.0, 0.5, 1.0]), pa.array([0, decimal.Decimal("0.5"), 1], pa.decimal128(5, 1))]:
        with pytest.raises(ValueError, match="row 1: column 'offset' is .*no whole number"):
            iw.scan(table(offset=half)).idle()
    with pytest.raises(ValueError, match="row 1: column 'offset' is null or NaN"):
        iw.scan(table(offset=pa.array([0.0, math.nan, 1.0]))).idle()


@pytest.mark.parametrize(
    "kind, values",
    [
        (pa.time64("us"), [0, 10_000, 20_000]),
        (pa.time64("ns"), [0, 10 * MS, 20 * MS]),
        (pa.time32("ms"), [0, 10, 20]),
        (pa.timestamp("us", "UTC"), [0, 10_000, 20_000]),
        (pa.duration("ms"), [0, 10, 20]),
    ],
    ids=str,
)
def test_times_have_the_unit_of_their_type(kind, values):
    integers = pa.array(values, pa.int32() if kind == pa.time32("ms") else pa.int64())
    assert arrivals(integers.cast(kind), unit="s") == [0, 10 * MS, 20 * MS]


def decimals(texts, kind):
    return pa.array([decimal.Decimal(text) for text in texts], kind)


@pytest.mark.parametrize("kind", [pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(20, 2), pa.decimal256(50, 2)], ids=str)
def test_decimals_keep_what_is_behind_the_point(kind):
    assert arrivals(decimals(["0", "0.9", "1.25"], kind), unit="ms") == [0, 900_000, 1_250_000]
    requests = pl.DataFrame(iw.scan(table(response=decimals(["0.4", "10.5", "20.51"], kind))))
    assert requests["completion"].cast(pl.Int64).to_list() == [0, 10 * MS + 11, 20 * MS + 21]


def test_decimals_are_exact_to_the_last_digit():
    late = ["1700000000.000000000", "1700000000.123456789", "1700000001.000000001"]
    assert arrivals(decimals(late, pa.decimal128(38, 28)), unit="s") == [0, 123_456_789, 1_000_000_001]
    assert arrivals(decimals(["0", "1000", "2000"], pa.decimal128(5, -3)), unit="us") == [0, MS, 2 * MS]
    with pytest.raises(ValueError, match="row 2: column 'arrival'.*more than 64 bits hold"):
        iw.scan(table(arrival=decimals(["0", "1", "99999999999"], pa.decimal128(22, 9))), unit="s").idle()


@pytest.mark.parametrize(
    "column, kind",
    [
        (pa.array([False, True, True]), "Boolean"),
        (pa.array([0, 86_400_000, 172_800_000]).cast(pa.date64()), "Date64"),
        (pa.array([0, 1, 2], pa.int32()).cast(pa.date32()), "Date32"),
        (pa.array(["0", "1", "2"]), "Utf8"),
        (pa.array([[0], [1], [2]]), "List"),
    ],
    ids=["bool", "date64", "date32", "text", "list"],
)
@pytest.mark.parametrize("name", ["arrival", "completion", "offset"])
def test_what_is_no_time_or_number_is_refused(column, kind, name):
    with pytest.raises(TypeError, match=f"column '{name}' is of type {kind}"):
        iw.scan(table(**{name: column})).idle()


def test_categories_of_numbers_are_numbers():
    assert arrivals(pa.array([0, 10 * MS, 10 * MS]).dictionary_encode()) == [0, 10 * MS, 10 * MS]
    assert completions(pa.nulls(3)) == [None] * 3


def damaged(name, offsets, data=b"aabbcc", within=lambda column: column):
    """A table with a column of text whose offsets or bytes are wrong, as a file may have them: it was sound when it was made."""
    at, letters = np.array([0, 2, 4, 6], np.int32), np.full(6, ord("r"), np.uint8)
    column = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(at), pa.py_buffer(letters)], null_count=0)
    made = table(**{name: within(column)})
    at[:], letters[:] = offsets, np.frombuffer(data, np.uint8)
    return made


class Unchecked:
    """A table that nothing checks before it comes."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def of_categories(names, keys=(0, 1, 2)):
    return pa.DictionaryArray.from_arrays(pa.array(keys, pa.int8()), names, safe=False)


def as_pandas(table):
    """A frame that has the texts as they are."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


DAMAGED = {
    "backwards": {"offsets": [0, -100, 4, 6]},
    "below zero": {"offsets": [0, 2, 4, -6]},
    "no utf-8": {"offsets": [0, 2, 4, 6], "data": b"\xff\xfe\xfd\xff\xff\xff"},
    "within a letter": {"offsets": [0, 1, 4, 6], "data": "ééé".encode()},
    "no category": {"offsets": [0, 2, 4, 6], "within": lambda names: of_categories(names, (0, 1, 7))},
    "category below zero": {"offsets": [0, 2, 4, -6], "within": of_categories},
}
READ = [lambda table: table, Unchecked, lambda table: table.to_reader()]


@pytest.mark.parametrize("given", READ, ids=["table", "unchecked", "reader"])
@pytest.mark.parametrize("name", ["op", "volume"])
@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_column_is_an_error(given, name, how):
    harmed = damaged(name, **DAMAGED[how])
    wrong = "is damaged|Invalid UTF8|Negative offsets|non-monotonic offset|out of bounds"
    with pytest.raises(iw.IdlewiseError, match=wrong):
        iw.scan(given(harmed)).idle()
    with pytest.raises(iw.IdlewiseError, match=wrong):
        iw.Partial().push(given(harmed))
    with pytest.raises(Exception, match=wrong):
        pa.table(iw.scan(given(harmed)))


def as_rows(table):
    """Its rows as one column."""
    return pa.chunked_array(table.to_struct_array().chunks)


@pytest.mark.parametrize("given", [READ[0], READ[2], as_pandas, as_rows], ids=["table", "reader", "pandas", "rows"])
def test_buffers_that_are_too_short_are_an_error(given):
    with pytest.raises(iw.IdlewiseError, match="offset.*(larger than values array|out of bounds)"):
        iw.scan(given(damaged("volume", [0, 2, 4, 2_000_000_000]))).idle()


@pytest.mark.parametrize("given", [READ[0], READ[2]], ids=["table", "reader"])
@pytest.mark.parametrize("place", ["column", "within a column"])
def test_a_name_that_is_no_text_is_an_error(given, place):
    within = pa.array([{"naaame": 1}] * 3)
    sink = pa.BufferOutputStream()
    made = table(naaame=pa.array([0, 1, 2])) if place == "column" else table(more=within)
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    harmed = pa.ipc.open_stream(sink.getvalue().to_pybytes().replace(b"naaame", b"n\xff\xffame")).read_all()
    with pytest.raises(iw.IdlewiseError, match="the table is damaged: .*utf-8"):
        iw.scan(given(harmed)).idle()


@pytest.mark.parametrize("name", ["completion", "issue"])
def test_what_ends_before_it_arrives_is_refused(name):
    with pytest.raises(iw.IdlewiseError, match=f"row 1: {name} before the arrival"):
        iw.scan(table(**{name: pa.array([0, 10 * MS - 1, 30 * MS])})).idle()


def test_batches_without_rows_are_passed_over():
    one = table().combine_chunks().to_batches()[0]
    given = pa.Table.from_batches([one.slice(0, 1), one.slice(1, 0), one.slice(1)])
    assert iw.scan(given).requests == len(one) and iw.scan(given).idle().intervals == iw.scan(one).idle().intervals


def test_a_decimal_is_shown_as_it_is():
    with pytest.raises(iw.IdlewiseError, match="row 0: column 'offset' is 1.5, which is no whole number"):
        iw.scan(table(offset=pa.array([decimal.Decimal("1.5")] * 3))).idle()


def test_what_does_not_fit_going_out_is_an_error():
    """A response of 292 years is a number, but the time of its completion is beyond what Arrow's durations hold."""
    trace = iw.scan(table(response=pa.array([0, 2**63 - 1, 0])))
    assert trace.requests == 3
    with pytest.raises(Exception, match=f"completion: {2**63 - 1 + 10 * MS} is more than a column of Arrow holds"):
        pl.DataFrame(trace)
    fits = pl.DataFrame(iw.scan(table(response=pa.array([0, 2**63 - 1 - 10 * MS, 0]))))
    assert fits["completion"].cast(pl.Int64).to_list() == [0, 2**63 - 1, 20 * MS]


def test_ticks_of_windows_are_a_unit():
    assert arrivals(pa.array([0, 100_000, 200_000]), unit="100ns") == [0, 10 * MS, 20 * MS]
    with pytest.raises(ValueError, match="one of s, ms, us, 100ns and ns"):
        arrivals(pa.array([0, 1, 2]), unit="ticks")


def test_what_is_not_a_table_yet_is_told():
    with pytest.raises(TypeError, match=r"not LazyFrame \(collect\(\) makes a table of it\)"):
        iw.scan(pl.LazyFrame({"arrival": [0]}))

"""Parts of a trace, put together: however it is cut, and in whatever order, they are the whole."""

import pickle

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import idlewise as iw

START = 1_700_000_000_000_000_000


def frame(rows, recorded):
    """Requests at these distances, of so many blocks, answered after so long."""
    arrivals, at = [], START
    for after, _, _ in rows:
        at += after
        arrivals.append(at)
    columns = {
        "arrival": arrivals,
        "offset": [0] * len(rows),
        "length": [4096 * blocks for _, blocks, _ in rows],
        "op": ["read"] * len(rows),
        "volume": ["a" if blocks % 3 else "b" for _, blocks, _ in rows],
    }
    if recorded:
        columns["response"] = [response for _, _, response in rows]
    return pl.DataFrame(columns)


rows = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 20), st.integers(0, 30_000_000), st.integers(0, 4_000_000_000_000)),
        st.integers(1, 40),
        st.one_of(st.integers(0, 40), st.integers(0, 90_000_000)),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), rows=rows, recorded=st.booleans())
def test_parts_are_the_whole(data, rows, recorded):
    whole = frame(rows, recorded)
    borders = data.draw(st.lists(st.integers(0, whole.height), max_size=6).map(sorted))
    cuts = [whole.slice(a, b - a) for a, b in zip([0, *borders], [*borders, whole.height])]
    # Parts that lie within the same moment have no order but that in which they are given.
    spans = [
        (volume, *cut.filter(pl.col("volume") == volume)["arrival"].unique())
        for cut in cuts
        for volume in cut["volume"].unique()
    ]
    moments = [span for span in spans if len(span) == 2]
    assume(len(moments) == len(set(moments)))
    parts = []
    for cut in cuts:
        part = iw.Partial(origin_ns=START + rows[0][0])
        part.push(cut)
        parts.append(part)
    expected = iw.scan(whole).idle()
    order = data.draw(st.permutations(parts))
    assert iw.Idleness.merge(order) == expected
    while len(order) > 1:
        at = data.draw(st.integers(1, len(order) - 1))
        order[0] = order[0].merge(order.pop(at))
    assert order[0].idle() == expected
    stream = iw.Partial(origin_ns=START + rows[0][0])
    for cut in cuts:
        stream.push(cut)
    assert stream.idle() == expected
    assert stream.idle().profile() == expected.profile()


def test_the_same_time_twice_is_refused():
    part = iw.Partial()
    part.push(frame([(5, 3, 1), (5, 3, 1)], True))
    before = part.idle()
    with pytest.raises(iw.IdlewiseError, match="overlap in time"):
        part.push(frame([(7, 3, 1)], True))
    assert part.idle() == before
    with pytest.raises(iw.IdlewiseError, match="overlap in time"):
        part.merge(part)


def test_parts_must_be_alike():
    with pytest.raises(iw.IdlewiseError, match="different models"):
        iw.Partial().merge(iw.Partial(disk="nvme"))
    with pytest.raises(iw.IdlewiseError, match="different origins"):
        iw.Partial().merge(iw.Partial(origin_ns=1))
    with pytest.raises(iw.IdlewiseError, match="no parts"):
        iw.Idleness.merge([])
    late = iw.Partial(origin_ns=START + 10)
    with pytest.raises(iw.IdlewiseError, match="before origin_ns"):
        late.push(frame([(5, 3, 1)], True))
    assert iw.Partial().idle().volumes == []


def test_more_requests_than_can_be_counted_are_refused():
    """Bytes may say what no trace has: here 2^63 requests, all in the same hour."""
    one = iw.Partial()
    one.push(frame([(5, 1, 1)], True))
    numbers = bytearray(one.to_bytes())
    for at in (2, 14):  # Behind the length and the version; and the count of the first hour.
        assert int.from_bytes(numbers[8 * at : 8 * at + 8], "little") == 1
        numbers[8 * at : 8 * at + 8] = (2**63).to_bytes(8, "little")
    huge = iw.Partial.from_bytes(bytes(numbers))
    assert huge.idle().by_volume()["requests"] == [2**63]
    with pytest.raises(iw.IdlewiseError, match="volume 'a': the parts have 2\\^64 requests or more together"):
        huge.merge(huge).idle()
    # Of another volume.
    other = iw.Partial.from_bytes(bytes(numbers[:-1]) + b"b")
    with pytest.raises(iw.IdlewiseError, match="the parts have 2\\^64 requests or more"):
        iw.Idleness.merge([huge, other])


def test_what_is_recorded_only_in_part_is_refused_where_it_matters():
    first, next_ = iw.Partial(), iw.Partial()
    first.push(frame([(0, 1, 5_000_000)], True))
    next_.push(frame([(1_000, 1, 0)], False))
    with pytest.raises(iw.IdlewiseError, match="recorded for some requests only"):
        first.merge(next_).idle()


def test_parts_can_be_sent():
    part = iw.Partial(disk="nvme", origin_ns=START)
    part.push(frame([(5, 3, 1), (5_000_000, 4, 1), (5, 3, 1)], False))
    sent = pickle.loads(pickle.dumps(part))
    assert sent.idle() == part.idle() and sent.idle().disk == iw.Disk.preset("nvme")
    kept = iw.Partial.from_bytes(part.to_bytes(), disk="nvme", origin_ns=START)
    assert kept.merge().idle() == part.idle()
    for damaged in [b"x", part.to_bytes()[:-1], part.to_bytes() * 2]:
        with pytest.raises(iw.IdlewiseError):
            iw.Partial.from_bytes(damaged)


def test_parts_of_a_file(made):
    trace = iw.scan(made)
    requests = pl.DataFrame(trace)
    parts = [iw.Partial() for _ in range(5)]
    for k, part in enumerate(parts):
        part.push(requests.slice(k * 600, 600))
    assert iw.Idleness.merge(parts[::-1]).by_volume().rows() == trace.idle().by_volume().rows()

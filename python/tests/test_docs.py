"""What the documents show runs as it stands."""

import pathlib
import re

import polars as pl
import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("document", ["docs/python.md", "python/README.md"])
def test_documents_run(document, made, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files, options = store
    monkeypatch.setenv("AWS_ENDPOINT_URL", options["client_kwargs"]["endpoint_url"])
    files.put(str(made), "traces/2026-11/two.csv", ACL="public-read")
    for folder in ["traces", "msr"]:
        (tmp_path / folder).mkdir()
    (tmp_path / "traces/two.csv").write_bytes(made.read_bytes())
    (tmp_path / "msr/two.csv.gz").write_bytes(made.read_bytes())
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.S)
    assert blocks
    names = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, document, "exec"), names)
    assert (tmp_path / "plan.toml").read_text().startswith("version = 1")
    if len(blocks) > 1:
        assert pl.read_parquet("plans.parquet")["volume"].to_list() == ["host_0", "host_1"]
        assert pl.read_parquet("fleet.parquet")["volume"].to_list() == ["host_0", "host_1"]

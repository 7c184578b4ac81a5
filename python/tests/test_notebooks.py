"""The notebooks run as they stand, from top to bottom."""

import json
import pathlib

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    names = {}
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in cells), "kept without what it printed"
    for cell in cells:
        exec(compile("".join(cell["source"]), path.name, "exec"), names)
    drawn = [plt.figure(number).axes[0] for number in plt.get_fignums()]
    plt.close("all")
    assert drawn and all(len(axes.lines) > 1 for axes in drawn)

"""What ``idlewise fleet`` runs: a job as JSON on standard input, and a line of JSON on standard output for each thing to tell."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .. import _native
from . import Dask, analyze


def main() -> int:
    """Do the job."""
    job = json.load(sys.stdin)
    version = job.pop("version")
    if version != _native.__version__:
        return _fail(f"the package idlewise is of version {_native.__version__}, and the command of {version}: install the same")
    job["disk"] = _native.Disk.parse(job["disk"])
    out = job["out"]
    try:
        if str(job["engine"]).startswith(("tcp:", "tls:")):
            job["engine"] = Dask(job["engine"])
        found = analyze(job.pop("paths"), progress=lambda share: _tell("share", share), **job)
    except (ImportError, OSError, ValueError) as error:
        return _fail(str(error))
    try:
        found.write_parquet(os.path.join(out, "fleet.parquet"))
    except ImportError as error:
        _tell("note", f"fleet.parquet is not written: {error}")
    return 0


def _tell(what: str, value: Any) -> None:
    print(json.dumps({what: value}), flush=True)


def _fail(why: str) -> int:
    _tell("error", why)
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""What ``idlewise fleet`` runs: a job as a line of JSON on standard input, and a line of JSON on standard output for each thing to tell."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import threading
from typing import Any

from .. import _native
from . import Dask, analyze


def main() -> int:
    """Do the job."""
    # What is temporary is taken away then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    version = job.pop("version")
    if version != _native.__version__:
        return _fail(f"the package idlewise is of version {_native.__version__}, and the command of {version}: install the same")
    job["disk"] = _native.Disk.parse(job["disk"])
    out = job["out"]
    try:
        if str(job["engine"]).startswith(("tcp:", "tls:")):
            job["engine"] = Dask(job["engine"])
        found = analyze(job.pop("paths"), progress=lambda share: _tell("share", share), **job)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        return _fail(str(error))
    try:
        found.write_parquet(os.path.join(out, "fleet.parquet"))
    except ImportError as error:
        _tell("note", f"fleet.parquet is not written: {error}")
        # One of an earlier job would pass for it.
        pathlib.Path(out, "fleet.parquet").unlink(missing_ok=True)
    return 0


def _end_with_the_command() -> None:
    # It keeps its end open for as long as it waits for the answer, and never writes again.
    if not os.read(sys.stdin.fileno(), 1):
        os.kill(os.getpid(), signal.SIGINT)


def _tell(what: str, value: Any) -> None:
    print(json.dumps({what: value}), flush=True)


def _fail(why: str) -> int:
    _tell("error", why)
    return 1


if __name__ == "__main__":
    sys.exit(main())

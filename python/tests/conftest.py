"""What the tests share."""

import os
import pathlib
import json
import subprocess
import sys

import pytest

import idlewise as iw

ROOT = pathlib.Path(__file__).parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


@pytest.fixture(scope="session")
def command():
    """Runs the command, and gives what it prints as JSON."""
    program = os.environ.get("IDLEWISE_COMMAND", TARGET / "debug/idlewise")

    # What the command leaves to the package is left to this one.
    environment = os.environ | {"IDLEWISE_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")}

    def text(*arguments, exit=(0,)):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, env=environment)
        assert done.returncode in exit, done.stderr
        return done.stdout

    def begin(*arguments):
        return subprocess.Popen([program, *map(str, arguments)], stderr=subprocess.DEVNULL, env=environment)

    def run(*arguments):
        return json.loads(text(*arguments, "--json"))

    run.text, run.begin = text, begin
    return run


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A trace of two volumes with and without response times, as a file."""
    path = tmp_path_factory.mktemp("trace") / "two.csv"
    rows, at = [], 128166372000000000
    for k in range(3000):
        at += (k * k % 97) * 20_000 + (k % 50 == 0) * 30_000_000
        response = 40_000 + k % 7 * 9_000
        rows.append(f"{at},host,{k % 3 % 2},{'Read' if k % 4 else 'Write'},{k * 4096},{4096 * (1 + k % 9)},{response}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="session")
def idle(made):
    return iw.scan(made).idle()


@pytest.fixture(scope="session")
def store():
    """A server of S3's protocol, with a bucket; and what tells a client of it."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    s3fs = pytest.importorskip("s3fs")
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "nobody", "secret": "knows", "client_kwargs": {"endpoint_url": f"http://{host}:{port}"}}
    files = s3fs.S3FileSystem(**options)
    files.mkdir("traces")
    yield files, options
    server.stop()

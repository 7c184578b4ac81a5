"""The stubs are complete and true."""

import doctest
import inspect
import pathlib
import subprocess
import sys

import idlewise as iw

HERE = pathlib.Path(__file__).parent


def run(*arguments):
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=HERE.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_example_and_the_package_are_typed():
    run("mypy", "--strict", "tests/example.py", "idlewise")


def test_pyright_agrees():
    run("pyright", "--pythonpath", sys.executable, "tests/example.py", "idlewise")


def test_stubs_are_those_of_the_module():
    run("mypy.stubtest", "idlewise", "--concise")


def public():
    """Everything of the package, and each member of its classes but those of exceptions."""
    for name in iw.__all__:
        one = getattr(iw, name)
        if name.startswith("__"):
            continue
        yield name, one
        if isinstance(one, type) and not issubclass(one, Exception):
            yield from ((f"{name}.{own}", getattr(one, own)) for own in vars(one) if not own.startswith("_"))


def test_each_thing_says_what_it_is_and_its_example_runs():
    runner, said = doctest.DocTestRunner(), 0
    for name, one in public():
        text = inspect.getdoc(one)
        assert text, name
        example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
        is_exception = isinstance(one, type) and issubclass(one, Exception)
        assert example.examples or "." in name or is_exception, f"{name} has no example"
        runner.run(example)
        said += 1
    assert said > 90
    assert runner.summarize(verbose=False).failed == 0

"""The stubs are complete and true."""

import ast
import doctest
import pathlib
import subprocess
import sys

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


def test_examples_of_the_stubs_run():
    tree = ast.parse((HERE.parent / "idlewise/_native.pyi").read_text())
    known = (ast.ClassDef, ast.FunctionDef, ast.Module)
    texts = [(getattr(node, "name", "module"), ast.get_docstring(node)) for node in ast.walk(tree) if isinstance(node, known)]
    examples = [doctest.DocTestParser().get_doctest(text, {}, name, None, 0) for name, text in texts if text]
    examples = [example for example in examples if example.examples]
    assert len(examples) >= 8
    runner = doctest.DocTestRunner()
    for example in examples:
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0

"""The README's examples work as printed."""

import re
import shlex
from pathlib import Path

import numpy as np

from numalab import describe
from numalab.cli import make_parser

TEXT = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_python_example_runs(capsys):
    (code,) = blocks("python")
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["3.16", "3.16", "3.17", "3.17"]
    assert names["ds"].sizes["run"] == 4
    assert names["ds"].attrs["title"].endswith("on guest-4x2, 3.17")
    assert (np.diff(names["ds"].numa_pages_migrated.isel(time=[0, -1])) > 0).all()


def test_the_description_is_valid():
    (text,) = blocks("toml")
    described = describe.loads(text)
    assert described.machine.name == "guest-4x2"
    assert described.kernel.scan_size_mb == 64
    assert described.run.seed_list == (0, 1, 2, 3)


def test_the_commands_exist():
    commands = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    named = {"kernels", "machines", "workloads", "run", "show", "rerun", "plot", "read", "claims", "compare"}
    assert {command[1] for command in commands} == named | {"record", "diagnose", "twin"}
    for command in commands:
        assert command[0] == "numalab"
        make_parser().parse_args(command[1:])


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        if "://" not in target:
            assert (Path(__file__).resolve().parent.parent / target).exists(), target

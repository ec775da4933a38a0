"""The README's examples work as printed."""

import re
import shlex
from pathlib import Path

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
    # what the text above it says of these seeds
    assert lines[0] == "3.16 [nan nan nan nan]"
    times = names["ds"].numa.convergence_time().values
    assert names["ds"].attrs["title"].endswith("on guest-2x2, 3.17")
    assert times.shape == (4,)
    assert ((times >= 3) & (times < 5.5)).all()


def test_the_description_is_valid():
    (text,) = blocks("toml")
    described = describe.loads(text)
    assert described.machine.name == "guest-4x2"
    assert described.kernel.scan_size_mb == 64
    assert described.run.seed_list == (0, 1, 2, 3)


def test_the_commands_exist():
    commands = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    named = {"kernels", "machines", "workloads", "run", "show", "rerun", "plot", "read", "claims", "compare"}
    assert {command[1] for command in commands} == named | {"record", "diagnose", "twin", "sweep", "sensitivity"}
    for command in commands:
        assert command[0] == "numalab"
        make_parser().parse_args(command[1:])


def test_every_column_of_the_score_is_explained():
    before, _, table = TEXT.partition("<!-- validation table: begin -->")
    head = next(line for line in table.splitlines() if line.startswith("traces "))
    legend = before[before.index("The columns of the first table") :]
    for column in re.split(r"\s{2,}", head):
        assert f"*{column}*" in legend, column
    threads = re.findall(r"^(\w+) +(?:only judges|may be fitted to) ", table, re.MULTILINE)
    for name in set(threads) - {"all"}:
        assert re.search(rf"\b{name}\b", legend), name


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        if "://" not in target:
            assert (Path(__file__).resolve().parent.parent / target).exists(), target

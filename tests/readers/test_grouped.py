"""Counts with their thousands parted, as locales and people print them: every table reads the same."""

import re

import pytest

from numalab.readers import mixed
from numalab.readers._numbers import ungrouped
from tests.readers.helpers import golden

TEXTS = {
    "lkp": ("lkp", "086.txt"),
    "mmtests": ("mmtests", "042.txt"),
    "mmtests without percents": ("mmtests", "uma.txt"),
    "latency-histogram": ("latency", "interval.txt"),
    "numamove": ("numamove", "bcc.txt"),
    "perf-lock": ("perf_lock", "report.txt"),
    "zoneinfo": ("zoneinfo", "zoneinfo.txt"),
    "sched": ("cases", "035-sched-8node-group", "input.txt"),
    "numactl": ("cases", "076-kvm-power-2node-ranges", "input.txt"),
    "numastat": ("cases", "060-numastat-plain-4node-clean", "input.txt"),
    "meminfo": ("cases", "025-node-exporter-3nodes-meminfo", "input.txt"),
    "vmstat": ("cases", "001-power9-memoryless-node0-vmstat", "input.txt"),
}
#: Whole numbers of four digits or more that stand alone, as counts do; not ids, times and addresses.
COUNT = re.compile(r"(?<![\w.,:/=\[(#-])\d{4,18}(?![\w.,:/)\]-])")


def western(digits, mark):
    return f"{int(digits):,}".replace(",", mark)


def indian(digits, mark):
    head, tail = digits[:-3], digits[-3:]
    pairs = [head[max(i - 2, 0) : i] for i in range(len(head), 0, -2)][::-1]
    return mark.join([*pairs, tail])


def tables(text):
    return [(part.format, table) for part in mixed.read_text(text, "x") for table in part.tables]


@pytest.mark.parametrize(
    ("group", "mark"), [(western, ","), (indian, ","), (western, "'"), (western, "\u2009"), (western, "\u202f")]
)
@pytest.mark.parametrize("name", TEXTS)
def test_grouped_counts(name, group, mark):
    text = golden(*TEXTS[name])
    grouped = COUNT.sub(lambda digits: group(digits[0], mark), text)
    assert grouped != text
    assert tables(grouped) == tables(text)


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("  1,234,567 ± 3%  -12.5%  12,34,567  x", "    1234567 ± 3%  -12.5%    1234567  x"),
        ("a 1,234.50 (1,900.00%)", "a  1234.50 ( 1900.00%)"),
        # lists of CPUs and decimal commas are none
        ("cpus 0,100,20", "cpus 0,100,20"),
        ("1,5 0,12 1234,567", "1,5 0,12 1234,567"),
    ],
)
def test_commas_of_counts_only(line, plain):
    assert ungrouped(line) == plain

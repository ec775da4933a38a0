"""Reader of trace events as perf script and trace-cmd print them.

chains.txt was printed by perf 6.1 on a small machine (perf record -e sched:sched_migrate_task, without and with -g).
The events of NUMA balancing are those of the golden trace of ftrace, put into the tools' forms.
"""

import re

import pytest

from numalab.readers import ftrace, perf_script
from numalab.readers.perf_script import parse
from tests.readers.helpers import golden, refuses

TRACE = golden("ftrace", "trace.txt") + golden("ftrace", "others.txt")
PREFIX = re.compile(r"^ *(?P<comm>\S+)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] \S+ +(?P<time>[\d.]+): (?P<event>\w+): ")
SYSTEMS = {"mm_migrate_pages": "migrate", "page_fault_user": "exceptions", "hint_fault": "probe"}


def converted(form):
    """Put the events of the golden trace into another tool's form, a line each."""
    found = []
    for line in TRACE.splitlines():
        if match := PREFIX.match(line):
            system = SYSTEMS.get(match["event"], "sched")
            found.append(form.format(**match.groupdict(), system=system) + line[match.end() :])
    return "\n".join(found) + "\n"


FORMS = {
    "perf script": "{comm:>16} {pid:>5} [{cpu}] {time}: {system}:{event}: ",
    "with process and thread": "{comm:>16}   77/{pid}   [{cpu}] {time}: {system}:{event}: ",
    "with a period": "{comm:>16} {pid:>5} [{cpu}] {time}:          1 {system}:{event}: ",
    "trace-cmd": "  {comm:>16}-{pid:<5} [{cpu}]  {time}: {event}:     ",
    "trace-cmd with flags": "  {comm:>16}-{pid:<5} [{cpu}] d..2.  {time}: {event}:     ",
}


def records(report, line=True, cpu=True):
    """Everything but where it stands."""
    lists = [report.moves, report.swaps, report.sticks, report.skipped_vmas, report.migrate_pages]
    lists += [report.migrate_tasks, report.page_faults, report.hint_faults, report.scan_works]
    gone = {"line": 0} | ({} if cpu else {"cpu": 0})
    return [event._replace(**gone) for events in lists for event in events]


EXPECTED = ftrace.parse(TRACE)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_events_as_from_ftrace(form):
    text = converted(FORMS[form])
    report = parse(text)
    assert records(report) == records(EXPECTED)
    assert report.counts() == EXPECTED.counts()
    assert (report.names, report.skipped) == (EXPECTED.names, [])
    # trace-cmd's lines are those of ftrace
    assert perf_script.looks_like(text) is not form.startswith("trace-cmd")
    assert ftrace.looks_like(text) is (form != "with a period")


def test_without_a_cpu():
    report = parse(converted("{comm:>16} {pid:>5} {time}: {system}:{event}: "))
    assert records(report, cpu=False) == records(EXPECTED, cpu=False)
    assert {event.cpu for event in report.moves} == {-1}


def test_real_output_with_call_chains():
    report = parse(golden("perf_script", "chains.txt"))
    assert report.migrate_tasks == [
        ftrace.MigrateTask(22005.123512, 18, 0, 1, "perf", 22910, 0, 1),
        ftrace.MigrateTask(22005.201320, 22882, 0, 2, "python", 22796, 1, 0),
        ftrace.MigrateTask(22005.257313, 22882, 0, 3, "python", 22795, 1, 0),
        ftrace.MigrateTask(22006.967488, 18, 0, 4, "perf", 22920, 0, 1),
    ]
    assert (report.names, report.skipped) == ({18: "migration/0", 22882: "python"}, [])


TEXT = converted(FORMS["perf script"])


@pytest.mark.parametrize("column", [72, 100])
def test_a_mail_that_wraps_and_quotes(column):
    wrapped = []
    for line in TEXT.splitlines():
        while len(line) > column and " " in line[60:column]:
            at = line.rindex(" ", 0, column)
            wrapped.append(line[:at])
            line = line[at + 1 :]
        wrapped.append(line)
    report = parse("".join(f"> {line}\r\n" for line in wrapped))
    assert records(report) == records(EXPECTED)
    assert report.skipped == []


def test_an_event_that_is_cut_off_is_said():
    lines = TEXT.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "sched_swap_numa" in line)
    report = parse("".join([*lines[:at], lines[at][:120] + "\n", *lines[at + 1 :]]))
    assert [(skip.line, skip.reason) for skip in report.skipped] == [
        (at + 1, "the fields of this event are cut off or changed")
    ]
    assert len(report.swaps) == len(EXPECTED.swaps) - 1


def test_other_events_and_text_are_named():
    other = "    bash 7 [000] 1.000000: sched:sched_waking: comm=x pid=1 prio=120 target_cpu=0\n"
    report = parse("Hello,\n" + other + TEXT)
    assert [(skip.line, skip.reason) for skip in report.skipped] == [
        (1, "not a trace event"),
        (2, "event sched_waking is not used"),
    ]


def test_lost_events():
    assert parse("cpus=2\nCPU:1 [LOST 17 EVENTS]\n" + converted(FORMS["trace-cmd"])).lost == 17


def test_reading_is_a_table_of_moves():
    reading = perf_script.read(TEXT, "x")
    assert reading.format == "perf-script"
    ds = reading.dataset()
    # a move and a swap done; a swap that failed, and a task that found no place
    assert ds.event_count.values.tolist() == [4]


def test_what_is_none():
    refuses(parse, "hello\n", 0, "holds no trace event of NUMA balancing")
    cut = "x 1 [000] 1.000000: sched:sched_move_numa: pid=1\n"
    refuses(parse, cut, 0, "line 1: the fields of this event")
    assert not perf_script.looks_like(TRACE)

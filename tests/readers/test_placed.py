"""What stands around the lines of a paste: prompts, names of files, archives, dates."""

import pytest

from numalab.readers._placed import Labels, clock, kernel_release, placed, ranges


def files(text):
    return [(line.text, line.file) for line in placed(text) if not line.heading]


@pytest.mark.parametrize(
    ("heading", "file"),
    [
        ("$ cat /proc/vmstat", "/proc/vmstat"),
        ("$ sudo cat /proc/12/numa_maps | grep heap", "/proc/12/numa_maps"),
        ("[root@db1 ~]# cat /proc/12/sched", "/proc/12/sched"),
        ("user@host:~$ cat /proc/vmstat", "/proc/vmstat"),
        ("# cat /proc/vmstat", "/proc/vmstat"),
        ("+ cat /proc/vmstat", "/proc/vmstat"),
        ("$ numastat -m", ""),
        ("==> /proc/vmstat <==", "/proc/vmstat"),
        ("/proc/<qemu pid>/numa_maps:", "/proc/<qemu pid>/numa_maps"),
        ("node3", "node3"),
        ("Node 3:", "Node 3"),
    ],
)
def test_headings_name_the_file_of_what_follows(heading, file):
    first, second = placed(f"{heading}\nx 1\n")[:2]
    assert (first.heading, first.file) == (True, file)
    assert (second.heading, second.file) == (False, file)


@pytest.mark.parametrize(
    "text", ["# this is prose", "5 % of all", "x 1", "node 0 cpus: 1", "node   4", "cats are fine"]
)
def test_what_is_no_heading(text):
    assert not placed(text)[0].heading


def test_paths_that_grep_puts_before_lines():
    assert files("a/node0/numastat:numa_hit 5\n/proc/vmstat:12:numa_hit 6\nvmstat:x 1\n")[:3] == [
        ("numa_hit 5", "a/node0/numastat"),
        ("numa_hit 6", "/proc/vmstat"),
        ("x 1", "vmstat"),
    ]
    # an empty file of one line is a value, an empty name of a table is not
    assert files("a/node2/cpulist:\nkernel/test/load:\n")[:2] == [("", "a/node2/cpulist"), ("kernel/test/load:", "")]


def test_an_archive():
    text = "# ttar - - -\nPath: sys/node0/x\nLines: 1\na 1\nMode: 644\n# ttar - - -\nDirectory: sys/y\nMode: 755\nb 2\n"
    assert files(text)[:2] == [("a 1", "sys/node0/x"), ("b 2", "")]
    # without its first line these are words like others
    assert not any(line.heading for line in placed("Lines: 1\nMode: 644\n"))


def test_a_file_of_proc_names_itself():
    assert placed("x 1\n", "/proc/12/sched")[0].file == "/proc/12/sched"
    assert placed("x 1\n", "vmstat.txt")[0].file == ""


def test_remarks_behind_values():
    assert [line.bare for line in placed("a 1  <---- this\nb 2 ← that\nc 3 # c\nd <5\n")] == [
        "a 1",
        "b 2",
        "c 3",
        "d <5",
        "",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Thu Jan  1 00:01:40 UTC 1970", 100),
        ("Thu Jan  1 00:01:40 1970", 100),
        ("1970-01-01 00:01:40", 100),
        ("1970-01-01T00:01:40,250+01:00", 100.25),
        ("time: 1647937563", 1647937563),
        ("1647937563.5", 1647937563.5),
        ("Thu Jan 41 00:01:40 UTC 1970", None),
        ("numa_hit 1647937563", None),
        ("12", None),
    ],
)
def test_times(text, seconds):
    assert clock(text) == seconds


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$ uname -a\nLinux db1 4.15.0-213-generic #224 SMP\n", (2, "4.15.0-213-generic")),
        ("$ uname -r\n6.1.0-13-amd64\n", (2, "6.1.0-13-amd64")),
        ("Linux version 3.16.0 (gcc)\n", (1, "3.16.0")),
        ("6.1.0\n", None),
        ("Linux is 4.15 times better\n", None),
    ],
)
def test_the_kernel_that_a_text_names(text, found):
    assert kernel_release(placed(text)) == found


def test_ranges():
    assert ranges([]) == ""
    assert ranges([5]) == "5"
    assert ranges([8, 0, 1, 2, 4]) == "0-2,4,8"


def test_labels():
    skipped, titles = [], []
    labels = Labels(skipped, titles, "why")
    before, after, row, long, *_ = placed(f"== before ==\nafter:\nx 1 2\n{'long ' * 30}\n")
    labels.offer(before)
    labels.offer(after)
    assert labels.take() == "after"
    assert labels.take() == ""
    labels.offer(row)
    labels.offer(long)
    labels.finish()
    assert [skip.line for skip in skipped] == [1, 3, 4]
    assert titles == [(2, "after")]

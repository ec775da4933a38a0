"""The recorder: what the kernel shows of NUMA balancing, looked at every second, as any user.

Each interval is appended to a log with one write, so a recorder that is killed loses at most the interval it was in.
The log is a text that ``numalab read`` takes; a run (`numalab.schema`) is made of it at the end. Nothing here imports
numpy or xarray: a program that looks on should be small.

The log
-------
Lines ``@ <seconds> kind=<kind> ...``, seconds since the recording began, and below each what it names:

record
    One line of JSON, at the very beginning: ``version`` of the format, kernel ``release``, ``what`` is followed,
    ``every_s``, ``sysctl``, and so on.
topology
    The files cpulist and distance of each node, below ``==> path <==``.
vmstat
    Lines of /proc/vmstat: counters of scans, faults and migrations.
numastat
    For each node a line ``node<N>`` and the lines of its numastat.
meminfo
    Lines MemTotal and MemFree of each node's meminfo.
tasks
    A line for each task alive: pid, tid, state, CPU, user and system time (ticks of 10 ms), minor faults, name.
sched
    With ``pid=`` and ``tid=``: the NUMA part of /proc/PID/task/TID/sched, and the time the task ran.
affinity
    A line for each task whose allowed CPUs were not known, or have changed: tid, list of CPUs.
cgroup, cgroup_stat
    Of a cgroup that is followed: lines of its memory.numa_stat, and counters of its memory.stat.
same
    Numbers of the tasks whose statistics are those of their last ``sched``.
numa_maps
    With ``pid=`` and ``comm=``: the lines of the process's large mappings; ``below=`` and ``above=`` are the numbers
    of small mappings with written pages at lower and higher addresses than the largest.
note
    A sentence on something left out, and why.
end
    The interval is whole; ``cpu_ms=`` is what the recorder itself used since it began.
stop
    After the last interval: why the recording ended.
"""

from numalab.record._follow import Cgroup, Everything, Follow, Tree
from numalab.record._loop import Outcome, record
from numalab.record._procfs import RecordError

__all__ = ["Cgroup", "Everything", "Follow", "Outcome", "RecordError", "Tree", "record"]

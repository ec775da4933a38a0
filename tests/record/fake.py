"""The /proc and /sys of a machine with nodes 0 and 2, made of text files."""

from pathlib import Path

#: Kernel threads have this flag in /proc/PID/stat.
KTHREAD = 0x00200000


def put(path: Path, text: str) -> None:
    """Write a file, in place: who has it open sees what is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def stat(tid, *, name="db", state="R", ppid=1, flags=0, minor=5, user=10, system=2, threads=1, rss=2000, cpu=0):
    """Make a /proc/PID/stat; fields that are not read are 7."""
    fields = [7] * 50
    fields[0], fields[1], fields[6], fields[7] = state, ppid, flags, minor
    fields[11], fields[12], fields[17], fields[21], fields[36] = user, system, threads, rss, cpu
    return f"{tid} ({name}) {' '.join(map(str, fields))}\n"


def sched(tid, *, name="db", threads=1, run="12.5", seq=3, preferred=2, faults=(1, 2, 30, 40), group=0):
    """Make a /proc/PID/sched as Linux 6.x prints it; faults: private and shared of node 0, then of node 2."""
    total = sum(faults)
    a, b, c, d = faults
    return f"""{name} ({tid}, #threads: {threads})
-------------------------------------------------------------------
se.exec_start                                :      26305388.797619
se.sum_exec_runtime                          :             {run}
nr_switches                                  :                    1
mm->numa_scan_seq                            :                    {seq}
numa_pages_migrated                          :                    7
numa_preferred_nid                           :                    {preferred}
total_numa_faults                            :                    {total}
current_node=0, numa_group_id={group}
numa_faults node=0 task_private={a} task_shared={b} group_private=0 group_shared=0
numa_faults node=2 task_private={c} task_shared={d} group_private=0 group_shared=0
"""


def vmstat(faults=100, local=60):
    """Make a /proc/vmstat."""
    return f"""nr_free_pages 5000
numa_hit 9000
pgfault 400
pgmajfault 4
numa_pte_updates 4096
numa_huge_pte_updates 0
numa_hint_faults {faults}
numa_hint_faults_local {local}
numa_pages_migrated 30
pgmigrate_success 31
pgmigrate_fail 0
"""


class Fake:
    """The tree; tasks are added and changed by their files."""

    def __init__(self, root: Path, *, nodes=(0, 2), balancing="1") -> None:
        self.root = root
        put(root / "proc/vmstat", vmstat())
        put(root / "proc/sys/kernel/osrelease", "6.12.0-fake\n")
        put(root / "proc/sys/vm/zone_reclaim_mode", "0\n")
        if balancing is not None:
            put(root / "proc/sys/kernel/numa_balancing", f"{balancing}\n")
            put(root / "sys/kernel/debug/sched/numa_balancing/scan_size_mb", "256\n")
        for place, node in enumerate(nodes):
            base = root / f"sys/devices/system/node/node{node}"
            put(base / "cpulist", f"{2 * place}-{2 * place + 1}\n")
            put(base / "distance", " ".join("10" if other == node else "21" for other in nodes) + "\n")
            self.numastat(node, 1000)
            put(base / "meminfo", f"Node {node} MemTotal:  {4096 * (place + 1)} kB\nNode {node} MemFree:  400 kB\n")

    def numastat(self, node, hit):
        names = ("numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node")
        values = (hit, 0, 0, 0, hit, 0)
        text = "".join(f"{name} {value}\n" for name, value in zip(names, values, strict=True))
        put(self.root / f"sys/devices/system/node/node{node}/numastat", text)

    def task(self, pid, tid=None, *, statistics=None, **fields):
        """Add a task, or change where it is."""
        tid = tid or pid
        folder = self.root / f"proc/{pid}"
        put(folder / f"task/{tid}/stat", stat(tid, **fields))
        if tid == pid:
            put(folder / "stat", stat(tid, **fields))
        if statistics is not None:
            put(folder / f"task/{tid}/sched", statistics)

    def maps(self, pid, text):
        put(self.root / f"proc/{pid}/numa_maps", text)

    def end(self, pid):
        """Let a process end: its files are empty for who has them open, and gone for others."""
        folder = self.root / f"proc/{pid}"
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
            else:
                path.write_text("")
                path.unlink()
        folder.rmdir()


def database(root: Path) -> Fake:
    """A database of two threads and its child, a foreign process, and a thread of the kernel."""
    fake = Fake(root)
    fake.task(2, name="kthreadd", flags=KTHREAD, ppid=0)
    fake.task(100, threads=2, statistics=sched(100, threads=2))
    fake.task(100, 101, threads=2, cpu=3, state="S", statistics=sched(101, preferred=-1, faults=(0, 0, 0, 0)))
    fake.task(200, name="worker 1", ppid=100, rss=100, statistics=sched(200, name="worker 1"))
    fake.task(300, name="other", ppid=1, rss=3000, statistics=sched(300, name="other"))
    fake.maps(
        100,
        "55d0c0000000 default file=/usr/bin/db mapped=300 N0=300 kernelpagesize_kB=4\n"
        "55d0c4000000 default heap anon=90 dirty=90 N0=90 kernelpagesize_kB=4\n"
        "7f0000000000 default anon=600 dirty=600 N0=200 N2=400 kernelpagesize_kB=4\n"
        "7f1000000000 default huge anon=2 dirty=2 N2=2 kernelpagesize_kB=2048\n",
    )
    fake.maps(300, "7f0000000000 default anon=500 dirty=500 N0=500 kernelpagesize_kB=4\n")
    return fake

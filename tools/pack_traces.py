"""Make data/traces from folders of raw traces.

    python tools/pack_traces.py FROM [FROM ...] [--to data/traces]

Every folder below FROM that has a meta.json becomes a folder of the same name with

    meta.json     as it was
    raw.tar.gz    the raw text that numalab reads
    run.nc.gz     the dataset made of it

Packing again changes only what differs, so the same text gives the same files.
"""

import argparse
import gzip
import io
import sys
import tarfile
from pathlib import Path

import xarray as xr

from numalab import runs
from numalab.readers import trace
from numalab.readers._folder import ARCHIVE, Folder

#: What is kept, by layout. Left out: kernel log and console, which hold nothing about NUMA balancing.
KEPT = {
    "A": (
        "vmstat.log", "vmstat_before.txt", "vmstat_after.txt", "numastat.log", "tasks.log", "sched.log",
        "numa_maps.log", "trace.txt", "trace_events.txt", "trace_stats.txt", "workload.log", "system.txt", "exit.txt",
    ),
    "B": (
        "samples.log", "workload.log", "vmstat_before.txt", "vmstat_after.txt", "counters_before.txt",
        "counters_after.txt", "zoneinfo_before.txt", "sysctl.txt", "hog.log",
    ),
}  # fmt: skip


def archive(folder: Folder, names: tuple[str, ...]) -> bytes:
    """Pack files into a tar.gz without dates and owners."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name in names:
            data = folder.data(name)
            if data is not None:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), 9, mtime=0)


def write(path: Path, data: bytes) -> None:
    """Write a file if it differs."""
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)


def pack(source: Path, target: Path) -> int:
    """Pack one folder; returns the bytes it takes.

    The dataset is made from the packed text, so that both are known to fit.
    """
    folder = Folder(source)
    target.mkdir(parents=True, exist_ok=True)
    meta = folder.data("meta.json")
    assert meta is not None
    write(target / "meta.json", meta)
    write(target / ARCHIVE, archive(folder, KEPT[trace.read(source).layout]))
    ds, stored = trace.read(target).dataset(), target / "run.nc.gz"
    if not (stored.is_file() and same(runs.open(stored), ds)):
        runs.save(ds, stored)
    return sum(path.stat().st_size for path in target.iterdir())


def same(a: xr.Dataset, b: xr.Dataset) -> bool:
    """Tell whether two datasets hold the same values and the same provenance, whichever numalab made them."""
    ours = ("numalab", "revision")
    said = [{key: value for key, value in runs.provenance(ds).items() if key not in ours} for ds in (a, b)]
    return runs.equal(a, b) and said[0] == said[1]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="+", type=Path, metavar="FROM", help="a run folder, or a folder of such")
    parser.add_argument("--to", type=Path, default=Path(__file__).resolve().parent.parent / "data" / "traces")
    args = parser.parse_args()
    found = sorted({meta.parent for source in args.source for meta in source.rglob("meta.json")})
    if not found:
        print(f"{args.source[0]}: no folder with a meta.json below it", file=sys.stderr)
        return 2
    names = [folder.name for folder in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        print(f"two folders are called {twice[0]}: pack them one by one", file=sys.stderr)
        return 2
    size = 0
    for folder in found:
        size += pack(folder, args.to / folder.name)
    print(f"{len(found)} traces in {args.to}, {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

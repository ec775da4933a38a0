"""Reader of /proc/zoneinfo."""

from numalab.readers import formats, zoneinfo
from tests.readers.helpers import golden, refuses

TEXT = golden("zoneinfo", "zoneinfo.txt")


def test_golden():
    report = zoneinfo.parse(TEXT)
    assert [(zone.node, zone.name, zone.line) for zone in report.zones] == [
        (0, "DMA32", 1),
        (0, "Normal", 114),
        (0, "Movable", 125),
        (1, "DMA32", 136),
    ]
    assert report.nodes() == {
        0: {"free": 2646, "min": 1202, "low": 1246, "high": 1290, "present": 40862, "managed": 36905},
        1: {"free": 2712, "min": 1219, "low": 1267, "high": 1315, "present": 40960, "managed": 40348},
    }


def test_dataset():
    reading = formats.read(TEXT, "x")
    assert reading.format == "zoneinfo"
    assert reading.dataset().free_pages.values.tolist() == [[[2646, 2712]]]


def test_what_is_wrong():
    refuses(zoneinfo.parse, TEXT[: TEXT.rindex("  managed")].rstrip() + "\n", 136, "DMA32 of node 1 lacks managed")
    refuses(zoneinfo.parse, "MemFree: 7\n", 0, "holds no zone")


def test_quoted():
    quoted = "".join(f"> {line}\n" for line in TEXT.splitlines())
    assert formats.read(quoted, "x").dataset().equals(formats.read(TEXT, "x").dataset())

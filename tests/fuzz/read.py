"""Coverage-guided fuzzing of `numalab.read` with atheris: ``python -m tests.fuzz.read -max_total_time=60``.

Begins with the golden texts of the readers and the samples of the notebook. An input that breaks a promise
(`tests.readers.promises`) or takes too long is saved; the output says where.
"""

import importlib
import pkgutil
import sys
import tempfile
import zlib
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("atheris is not installed; it is built for Linux on x86-64 only")

import numalab.readers

with atheris.instrument_imports(include=["numalab.readers"]):
    # some are imported late, by those who need them
    for module in pkgutil.iter_modules(numalab.readers.__path__, "numalab.readers."):
        importlib.import_module(module.name)

from numalab.readers import mixed
from tests.readers.helpers import GOLDEN
from tests.readers.promises import attempt, check_strange_line

ROOT = Path(__file__).resolve().parents[2]
SEEDS = (*GOLDEN.glob("**/*.txt"), *ROOT.glob("data/samples/*.txt"))
#: Bytes of an input, and seconds for one, in which the slowest golden text of that length is read twenty times.
LONGEST, MOST_SECONDS = 8192, 10


def one_input(data: bytes) -> None:
    """Read bytes, then the same with a strange line at a place that the bytes decide."""
    if attempt(data) is None:
        return
    lines = mixed.decode(data).split("\n")
    at = zlib.crc32(data) % (len(lines) + 1)
    # a line that ends so goes on in the next one, and a text of a Mac has no other line ends
    if len(lines) > 1 and not (at and lines[at - 1].rstrip("\r").endswith("=")):
        check_strange_line(lines, at)


def main() -> None:
    """Fuzz with the options of libFuzzer."""
    with tempfile.TemporaryDirectory() as corpus:
        for i, path in enumerate(SEEDS):
            Path(corpus, str(i)).write_bytes(path.read_bytes())
        atheris.Setup([*sys.argv, corpus, f"-max_len={LONGEST}", f"-timeout={MOST_SECONDS}"], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

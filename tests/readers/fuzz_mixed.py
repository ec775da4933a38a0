"""Coverage-guided fuzzing of `numalab.read` with atheris (not installed by default, and no test of pytest).

``pip install atheris``, then ``python -m tests.readers.fuzz_mixed -max_total_time=60``. Begins with the golden cases;
what crashes is saved as crash-* in the working folder.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["numalab.readers"]):
    from numalab.readers import mixed

from tests.readers.helpers import GOLDEN


def one_input(data: bytes) -> None:
    """Read bytes: only numalab's own errors, of one line, may come out."""
    try:
        found = mixed.read_text(mixed.decode(data), "x")
        found.datasets()
    except ValueError as error:
        if not type(error).__module__.startswith("numalab.") or "\n" in str(error):
            raise


def main() -> None:
    """Fuzz with the options of libFuzzer."""
    with tempfile.TemporaryDirectory() as corpus:
        for path in GOLDEN.glob("cases/*/input.txt"):
            Path(corpus, path.parent.name).write_bytes(path.read_bytes())
        atheris.Setup([*sys.argv, corpus, "-max_len=8192", "-timeout=20"], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

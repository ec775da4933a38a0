"""Coverage-guided fuzzing for a short time (`make fuzz` for longer), and that a broken promise is seen."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from numalab.readers import mixed
from tests.readers.promises import check_strange_line

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20


def test_nothing_breaks_for_a_while(tmp_path):
    pytest.importorskip("atheris", reason="atheris is not installed; it is built for Linux on x86-64 only")
    # the same inputs each time: what fails here has been changed
    options = ("-seed=6", f"-max_total_time={SECONDS}", f"-artifact_prefix={tmp_path}/")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.read", *options], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert list(tmp_path.iterdir()) == []
    # the seeds alone are 123
    assert int(re.search(r"Done (\d+) runs", done.stderr)[1]) > 150


def test_a_line_lost_in_silence_is_seen(monkeypatch):
    lines = ["numa_hit 5", "numa_miss 7"]
    check_strange_line(lines, 1)
    whole = mixed.read_text

    def forgetful(text, source):
        found = whole(text, source)
        return replace(found, parts=tuple(replace(part, skipped=()) for part in found))

    monkeypatch.setattr(mixed, "read_text", forgetful)
    with pytest.raises(AssertionError):
        check_strange_line(lines, 1)

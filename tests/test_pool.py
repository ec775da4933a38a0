"""Jobs in processes: results as they are finished, errors that name their job, nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from numalab import pool


class TwoArguments(Exception):
    """Cannot be unpickled: pickle gives it the one argument that Exception was given."""

    def __init__(self, what, why):
        super().__init__(f"{what}: {why}")


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)


def in_turn(job, folder):
    """Wait for the file of the job after this one, if there is one; it comes with that job's result."""
    if job < 3:
        wait_for(folder / str(job + 1))
    return 10 * job


def fail(job):
    if job == 2:
        raise ValueError("no such node")
    return job


def fail_oddly(job):
    raise TwoArguments("node", "missing")


def give_what_cannot_travel(job):
    return lambda: job


def die(job, how):
    if job == 1:
        os.kill(os.getpid(), how)
    time.sleep(60)


def leave(job):
    os._exit(7)


def where(job):
    return os.getpid()


def test_results_come_as_they_are_finished(tmp_path):
    # each job waits until the result of the one after it is there, so the last is finished first
    found = []
    for job, result in pool.results(partial(in_turn, folder=tmp_path), [1, 2, 3], processes=3):
        found.append((job, result))
        (tmp_path / str(job)).touch()
    assert found == [(3, 30), (2, 20), (1, 10)]


def test_every_job_is_done_once_by_few_processes():
    found = dict(pool.results(where, range(20), processes=2))
    assert sorted(found) == list(range(20))
    assert len(set(found.values())) <= 2
    assert os.getpid() not in found.values()


def test_large_jobs_and_results_go_through():
    # more than a pipe holds, both ways
    jobs = [bytes([i]) * 3_000_000 for i in range(4)]
    assert sorted(result for _, result in pool.results(bytes.upper, jobs, processes=2)) == jobs


@pytest.mark.parametrize(("jobs", "processes"), [([5, 4, 3], 1), ([5], 8)])
def test_one_at_a_time_is_done_here(jobs, processes):
    assert list(pool.results(where, jobs, processes=processes)) == [(job, os.getpid()) for job in jobs]


def test_nothing_to_do():
    assert list(pool.results(where, [])) == []


def test_no_more_processes_than_processors(monkeypatch):
    monkeypatch.setattr(pool, "processors", lambda: 1)
    assert dict(pool.results(where, [1, 2])) == {1: os.getpid(), 2: os.getpid()}


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_keeps_its_type_and_names_its_job(processes):
    with pytest.raises(ValueError, match="no such node") as caught:
        list(pool.results(fail, [1, 2, 3], processes=processes, what="trace", name="r{}".format))
    assert str(caught.value) == "no such node"
    (note,) = caught.value.__notes__
    assert note.startswith("in trace r2")
    # where in the function it was
    assert ('raise ValueError("no such node")' in note) == (processes == 2)


def test_an_error_that_cannot_travel():
    with pytest.raises(pool.JobError, match=r"^TwoArguments: node: missing\nin case [12],") as caught:
        list(pool.results(fail_oddly, [1, 2], processes=2))
    assert "in fail_oddly" in caught.value.__notes__[0]


def test_a_result_that_cannot_travel():
    with pytest.raises(Exception, match="pickle") as caught:
        list(pool.results(give_what_cannot_travel, [1, 2], processes=2))
    assert caught.value.__notes__[0].startswith("in case ")


def test_a_killed_process_is_not_waited_for():
    with pytest.raises(MemoryError, match=r"^case 1: its process was killed, as when memory runs out$"):
        list(pool.results(partial(die, how=signal.SIGKILL), [0, 1], processes=2))
    with pytest.raises(pool.JobError, match=r"^case 1: its process ended by SIGTERM$"):
        list(pool.results(partial(die, how=signal.SIGTERM), [0, 1], processes=2))
    with pytest.raises(pool.JobError, match=r"^case [01]: its process ended with exit code 7$"):
        list(pool.results(leave, [0, 1], processes=2))


def test_progress_is_a_line_for_each_job_in_a_log(capfd):
    list(pool.results(where, [1, 2], processes=1, what="trace", name="r{}".format, progress=True))
    assert re.sub(r"\d+ s:", "0 s:", capfd.readouterr().err).splitlines() == [
        "traces to do: 2",
        "trace 1 of 2, 0 s: r1",
        "trace 2 of 2, 0 s: r2",
    ]
    list(pool.results(where, [1, 2], processes=2))
    assert capfd.readouterr().err == ""


def test_a_job_that_fails_is_not_called_finished(capfd):
    with pytest.raises(ValueError, match="no such node"):
        list(pool.results(fail, [1, 2], processes=1, progress=True))
    assert capfd.readouterr().err.splitlines()[1:] == ["case 1 of 2, 0 s: 1"]


def test_progress_is_a_bar_on_a_terminal(capfd, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    list(pool.results(where, [1, 2], processes=1, what="trace", progress=True))
    told = capfd.readouterr().err
    assert "2/2" in told
    assert "trace" in told
    assert "to do" not in told


def sleep_after_telling(job, folder):
    """End the first job at once; say which process is at work in all others, and stay there."""
    if job:
        (folder / f"{job}.part").write_text(str(os.getpid()))
        (folder / f"{job}.part").rename(folder / str(job))
        time.sleep(600)
    return job


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_leaving_the_loop_ends_the_workers(tmp_path):
    started = time.monotonic()
    for job, _ in pool.results(partial(sleep_after_telling, folder=tmp_path), range(3), processes=2):
        assert job == 0
        wait_for(tmp_path / "1")
        break
    assert time.monotonic() - started < 120
    assert gone(int((tmp_path / "1").read_text()))


PROGRAM = """
from functools import partial
from pathlib import Path
from numalab import pool
from tests.test_pool import sleep_after_telling

if __name__ == "__main__":
    finished = []
    try:
        for job, _ in pool.results(partial(sleep_after_telling, folder=Path({folder!r})), range(5), processes=2):
            finished.append(job)
    except KeyboardInterrupt:
        print("finished", finished, flush=True)
"""


def test_ctrl_c_ends_the_workers_and_keeps_what_is_finished(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(folder=str(tmp_path)))
    env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    )
    try:
        wait_for(tmp_path / "1")
        wait_for(tmp_path / "2")
        workers = [int((tmp_path / name).read_text()) for name in "12"]
        assert not any(map(gone, workers))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert all(map(gone, workers))
    assert (out, err) == ("finished [0]\n", "")


def die_at_once(job):
    if job == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * job


def test_outcomes_go_on_after_a_death_even_of_the_last():
    got = {}
    for job, outcome in pool.outcomes(die_at_once, [0, 1, 2, 3], processes=2):
        got[job] = str(outcome)
    killed = "case 1: its process was killed, as when memory runs out"
    assert got == {0: "0", 1: killed, 2: "20", 3: "30"}
    # one job alone is not done here if there may be two processes: it would take this one with it
    ((job, outcome),) = pool.outcomes(die_at_once, [1], processes=2)
    assert (job, type(outcome)) == (1, MemoryError)


def test_outcomes_of_one_process_are_made_here():
    assert list(pool.outcomes(lambda job: job + os.getpid(), [1, 2], processes=1)) == [
        (1, 1 + os.getpid()),
        (2, 2 + os.getpid()),
    ]


def test_outcomes_raise_what_the_function_raised():
    with pytest.raises(ValueError, match="no such node"):
        list(pool.outcomes(fail, [2], processes=1))

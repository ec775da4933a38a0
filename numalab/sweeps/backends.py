"""Where batches are simulated: in this process, in processes of this machine, or on a dask cluster.

Each yields results as they are finished. A batch whose process was killed is given out anew, :data:`ATTEMPTS` times in
all; then its runs count as failed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent import futures
from typing import Any

from numalab import pool
from numalab.sweeps.batch import Job, Result, died, name_of, simulate_batch
from numalab.sweeps.extra import need
from numalab.sweeps.store import SweepError

ATTEMPTS = 3
#: Batches given to a cluster at once, for each of its threads.
_AHEAD = 4


def in_processes(jobs: Sequence[Job], workers: int) -> Generator[Result]:
    """Simulate in some processes; one, or one batch, is done in this.

    Parameters
    ----------
    jobs : sequence of Job
    workers : int
    """
    for attempt in range(1, ATTEMPTS + 1):
        lost: list[Job] = []
        done = pool.outcomes(simulate_batch, jobs, processes=workers, what="batch", name=name_of)
        for job, result in done:
            if isinstance(result, Result):
                yield result
            elif attempt < ATTEMPTS:
                lost.append(job)
            else:
                yield died(job, f"{result}, {ATTEMPTS} times")
        jobs = lost


def on_cluster(jobs: Sequence[Job], client: Any) -> Generator[Result]:
    """Simulate on a dask.distributed cluster.

    Parameters
    ----------
    jobs : sequence of Job
    client : distributed.Client

    Raises
    ------
    SweepError
        The cluster is gone, or its workers cannot simulate; what was stored stays.
    """
    distributed = need("distributed")
    waiting = iter(jobs)
    given: dict[str, tuple[Job, int]] = {}

    def give(job: Job, attempt: int = 1) -> Any:
        # results are read once and never shared: a key that dask makes of the content is not needed
        future = client.submit(simulate_batch, job, pure=False)
        given[future.key] = job, attempt
        return future

    threads = sum(client.nthreads().values())
    first = [job for job, _ in zip(waiting, range(max(1, _AHEAD * threads)), strict=False)]
    finished = distributed.as_completed([give(job) for job in first])
    for future in finished:
        job, attempt = given.pop(future.key)
        try:
            # waits once more where the worker that had it was killed meanwhile
            result = future.result()
        except distributed.KilledWorker:
            if attempt < ATTEMPTS:
                finished.add(give(job, attempt + 1))
                continue
            result = died(job, f"batch {job.batch}: its worker was killed, as when memory runs out, {ATTEMPTS} times")
        except futures.CancelledError:
            raise SweepError("the cluster is gone; the same call continues when it is back") from None
        except Exception as error:
            raise SweepError(f"the cluster's workers cannot simulate: {error!r}") from error
        yield result
        future.release()
        if (more := next(waiting, None)) is not None:
            finished.add(give(more))

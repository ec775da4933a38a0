"""Sweeps: many runs over machines, workloads, kernels, switches, parameters and seeds, in one zarr store.

:func:`sweep` runs one and can be killed anywhere; the next call goes on. :func:`open` opens what is there, lazily.
The packages this needs beyond numalab's own are the extra ``sweep``.
"""

from numalab.sweeps.indices import Sensitivity, sensitivity
from numalab.sweeps.quantities import QUANTITIES, quantity
from numalab.sweeps.running import Progress, Trial, continue_, run, status, sweep, trial
from numalab.sweeps.spec import Spec
from numalab.sweeps.store import SweepError, is_store, open, spec_of

__all__ = [
    "QUANTITIES",
    "Progress",
    "Sensitivity",
    "Spec",
    "SweepError",
    "Trial",
    "continue_",
    "is_store",
    "open",
    "quantity",
    "run",
    "sensitivity",
    "spec_of",
    "status",
    "sweep",
    "trial",
]

"""The five patch threads: what each asked, what it published, and its replay in the model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Thread:
    """One mail thread.

    Attributes
    ----------
    name : str
        As on the command line.
    title, question : str
        Its subject, and what a reader wants to know.
    mail : str
        Author, date and message id of the first mail.
    ready : bool
        Whether numalab can replay it.
    """

    name: str
    title: str
    question: str
    mail: str
    ready: bool


THREADS: dict[str, Thread] = {
    thread.name: thread
    for thread in (
        Thread(
            "shared_cow",
            "mm: numa: do not trap faults on shared data section pages",
            "Why do 288 readers of one array wait?",
            "Henry Willard, 2018-01-16, 1516130924-3545-1-git-send-email-henry.willard@oracle.com",
            True,
        ),
        Thread(
            "convergence",
            "sched,numa: improve NUMA convergence times",
            "Why does one last thread never get home?",
            "Rik van Riel, 2014-06-23, 1403538095-31256-1-git-send-email-riel@redhat.com",
            True,
        ),
        Thread(
            "scan_overhead",
            "Reduce system overhead of automatic NUMA balancing",
            "Why did xfs_repair take twice as long, with the same locality?",
            "Mel Gorman, 2015-03-23, 1427113443-20973-1-git-send-email-mgorman@suse.de",
            True,
        ),
        Thread(
            "policy_lock",
            "mempolicy: convert the shared_policy lock to a rwlock",
            "Why 1 % at 128 ranks and 90 % at 2,000?",
            "Nathan Zimmer, 2015-11-17, 1447777078-135492-1-git-send-email-nzimmer@sgi.com",
            True,
        ),
        Thread(
            "marginal_moves",
            "sched,numa: prevent task moves with marginal benefit",
            "Did 94 % more local faults help?",
            "Rik van Riel, 2014-07-29, 20140729023940.37b6aebc@annuminas.surriel.com",
            True,
        ),
    )
}


#: Where something is judged that no mail says: a control, or a trace of a real kernel.
NOT_PUBLISHED = "not in the mail"
#: `Claim.tolerance` of traces of a real kernel, which are judged by the rules of the validation.
AS_VALIDATED = "as in docs/validation.md"


@dataclass(frozen=True)
class Claim:
    """One published statement beside the model's answer.

    Attributes
    ----------
    thread, claim, source : str
        Thread; what is claimed; message id or commit.
    published : str
        The published figure or word.
    model, low, high : float or None
        The model's median and 90 % band; None where it has none.
    real : float or None
        The same on a real kernel, where a trace shows it.
    holds : bool or None
        Whether the model agrees; None: nothing to compare, or a constant was fitted to it.
    note : str
    tolerance : str
        What counts as holding, in a few words; empty where nothing is judged.
    """

    thread: str
    claim: str
    source: str
    published: str
    model: float | None
    low: float | None
    high: float | None
    real: float | None
    holds: bool | None
    note: str = ""
    tolerance: str = ""

    @property
    def in_mail(self) -> bool:
        """Whether a mail says it; else it is a control, or a trace of a real kernel."""
        return NOT_PUBLISHED not in (self.note, self.published.strip("()"))

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as a dictionary fit for JSON: where a time is infinite, None, and the note says so."""
        plain = asdict(self)
        never = [key for key in ("model", "low", "high") if plain[key] == math.inf]
        plain |= dict.fromkeys(never, None)
        if never:
            plain["note"] = "; ".join(
                filter(None, [self.note, f"{', '.join(never)}: never, within the time simulated"])
            )
        return plain


#: Takes the name and the dataset of a case.
Keep: TypeAlias = "Callable[[str, xr.Dataset], object]"


@dataclass
class Replay:
    """What the replay of a thread yields: text for people, claims, datasets and figures.

    ``results`` holds the numbers behind the tables with their provenance, ready for JSON; ``interrupted`` says
    that Ctrl-C ended it before all cases were finished. Each dataset is given to ``keep`` as soon as it is there.
    """

    thread: str
    text: str = ""
    interrupted: bool = False
    results: dict[str, Any] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    datasets: dict[str, xr.Dataset] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    keep: Keep | None = None

    def add(self, name: str, ds: xr.Dataset) -> None:
        """Take the dataset of a case that is finished."""
        self.datasets[name] = ds
        if self.keep is not None:
            self.keep(name, ds)


def replay(
    name: str,
    *,
    seeds: int | None = None,
    full: bool = False,
    stored: bool = False,
    progress: bool = False,
    keep: Keep | None = None,
) -> Replay:
    """Replay a thread.

    Parameters
    ----------
    name : str
        Key of :data:`THREADS`.
    seeds : int, optional
        Runs per case; without it 12, and 30 with ``full``.
    full : bool
        All kernels, patches and assumptions rather than the main ones.
    stored : bool
        Print the stored results of a full replay and run nothing.
    progress : bool
        Report each finished case on stderr.
    keep : callable, optional
        Called with the name and the dataset of each main case as soon as it is finished.

    Raises
    ------
    KeyError
        No such thread.
    ValueError
        A thread that cannot be replayed yet.
    """
    if not THREADS[name].ready:
        raise ValueError(f"thread {name}: not replayed yet")
    module = import_module(f"numalab.patch_threads.{name}")
    if stored:
        shipped: Replay = module.replay_stored()
        return shipped
    run: Callable[..., Replay] = module.replay
    return run(seeds=seeds or (30 if full else 12), full=full, progress=progress, keep=keep)

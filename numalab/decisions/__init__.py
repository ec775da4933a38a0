"""Replay of a kernel's decisions: recorded inputs go through numalab's rules, and must give what was decided.

A trace with probes holds every hint fault, every answer of the migration filter, and the fault statistics the
kernel printed once a second. From faults and samples the sums, groups and placements of each task are followed
(`tasks`, `groups`), what is not printed is bounded (`runtime`, `locality`), and the rules of `numalab.model` are
asked: `answers` the migration filter, `preferences` the preferred node, `periods` the scan period.
A decision that depends on something the trace does not hold is counted apart.
"""

from __future__ import annotations

from os import PathLike

from numalab.decisions import answers, groups, periods, preferences, releases, tasks
from numalab.decisions.history import History
from numalab.decisions.result import Replay, table
from numalab.kernel import Value
from numalab.readers import recorded, trace
from numalab.readers._text import ReadError

__all__ = ["Replay", "replay", "replayable", "table"]


def replay(path: str | PathLike[str], **switches: Value) -> Replay:
    """Replay the decisions of one trace.

    Parameters
    ----------
    path : path-like
        A folder of layout A with the probes.
    **switches : bool, int or str
        Set in the kernel whose rules are applied, to see whether a wrong rule would show.

    Raises
    ------
    ReadError
        It is not, or it is broken; names file and line.
    """
    recording = recorded.recording(path)
    try:
        kernel = releases.kernel_of(recording.release).replace(**switches)
    except ValueError as error:
        raise ReadError(str(path), 0, str(error)) from error
    tracks = tasks.tracks(recording)
    history = History(recording, tracks, groups.follow(recording, tracks), kernel)
    return Replay(
        trace=recording.name,
        release=recording.release,
        kernel=kernel.label,
        loss_s=recording.loss_s,
        recording=recording,
        answers=answers.compare(recording, history, kernel),
        sums={tid: track.sums for tid, track in tracks.items()},
        joins=history.groups.joins,
        preferred=preferences.preferred(recording, history, kernel),
        group_sums=preferences.group_sums(recording, history),
        scans=periods.compare(recording, tracks, history.counted, kernel),
    )


def replayable() -> list[str]:
    """Name the packed traces that have the probes."""
    return [name for name in trace.names() if _has_probes(name)]


def _has_probes(name: str) -> bool:
    with trace.folder(name) as path:
        return recorded.has_probes(path)

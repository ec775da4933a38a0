"""The migration filter's answers: recorded inputs through the rules, branch by branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from numalab.decisions.history import GroupFaults, History
from numalab.decisions.tasks import PID_MASK
from numalab.kernel import Kernel
from numalab.layout import Bools
from numalab.model import pagefilter
from numalab.readers.recorded import Recording
from numalab.readers.trace import MIGRATED

LOST = "events lost before it"
NO_FAULT = "no hint fault follows"
NO_TASK = "task not in the samples"
SUMS = "fault sums not known"
SEQUENCE = "scan sequence between two samples"
SOURCE = "source node"
CPU_SUMS = "the group's CPU sums"
JOIN = "unseen join"
ACTIVE = "active nodes are not recorded"
DEFERRED = "held-back faults are not recorded"


@dataclass
class Branch:
    """Answers that one branch decides.

    Attributes
    ----------
    yes, no : int
        Decidable answers of the kernel.
    equal : int
        Those the rule gives too.
    differ : list of int
        Calls of the filter where it does not.
    """

    yes: int = 0
    no: int = 0
    equal: int = 0
    differ: list[int] = field(default_factory=list)


@dataclass
class Answers:
    """All answers of a recording.

    Attributes
    ----------
    branches : dict
        Name, as in `pagefilter.BRANCHES`, -> Branch.
    undecidable : Counter
        Reason -> answers; the branch is named where it is known.
    """

    branches: dict[str, Branch] = field(default_factory=dict)
    undecidable: Counter[tuple[str, str]] = field(default_factory=Counter)


def compare(recording: Recording, history: History, kernel: Kernel) -> Answers:
    """Give every recorded call of the filter its answer by rule, if the recording holds its inputs."""
    out = Answers()
    answers = recording.decisions.filter_answer.tolist()
    for call, verdict in enumerate(_Rules(recording, history, kernel).verdicts()):
        branch, ours, reason = verdict
        if ours is None:
            out.undecidable[branch, reason] += 1
            continue
        tally = out.branches.setdefault(branch, Branch())
        tally.yes += answers[call] == 1
        tally.no += answers[call] == 0
        if ours == answers[call]:
            tally.equal += 1
        else:
            tally.differ.append(call)
    return out


Verdict = tuple[str, int | None, str]


class _Rules:
    """Applies the filter's rules to what was recorded of each call."""

    def __init__(self, recording: Recording, history: History, kernel: Kernel) -> None:
        self._recording, self._history, self._kernel = recording, history, kernel

    def verdicts(self) -> Iterator[Verdict]:
        """Yield for each call the branch, the answer by rule (None: not decidable) and the reason if not."""
        d, loss = self._recording.decisions, self._recording.loss_s
        for call, (row, time) in enumerate(zip(d.filter_fault.tolist(), d.filter_time.tolist(), strict=True)):
            if time > loss:
                yield "", None, LOST
            elif row < 0:
                yield "", None, NO_FAULT
            else:
                yield self._verdict(call, row, time)

    def _verdict(self, call: int, row: int, time: float) -> Verdict:
        d, node_of = self._recording.decisions, self._recording.node_of
        task, target = int(d.pid[row]), int(node_of[d.filter_cpu[call]])
        last_cpu, last_pid = int(d.last_cpu[row]), int(d.last_pid[row])
        last = np.array([last_cpu]), np.array([last_pid])
        own = bool(pagefilter.is_own(*last, np.array([task & PID_MASK]))[0])
        unset = bool(pagefilter.is_unset(*last)[0])
        elsewhere = not unset and int(node_of[last_cpu]) != target
        known = task in self._history.tracks
        # without samples a page last used by another is still decided by where
        if not known and (own or not elsewhere):
            return "", None, NO_TASK
        early = self._early(task, time, own or unset) if known else {False}
        members: list[tuple[int, ...]] | None = [()]
        if known:
            members = self._history.groups.members(task, time)
        if members is None:
            return "", None, JOIN
        branches = {self._branch(e, elsewhere, own, not m) for e in early for m in members}
        names = " or ".join(pagefilter.BRANCHES[branch] for branch in sorted(branches))
        allows = set(pagefilter.ALLOWS[list(branches)].tolist())
        if branches == {pagefilter.GROUP}:
            return names, *self._group(row, time, target, members)
        if branches == {pagefilter.DEFERRED}:
            return names, None, DEFERRED
        if len(allows) > 1 or branches & {pagefilter.GROUP, pagefilter.DEFERRED}:
            return "", None, SEQUENCE if len(early) > 1 else JOIN
        # which of several decides may not be known, but what they say
        return names, int(allows.pop()), ""

    def _branch(self, early: bool, elsewhere: bool, own: bool, ungrouped: bool) -> int:
        deferred = bool(self._kernel.migrate_deferred)
        return int(pagefilter.branch(*(_one(value) for value in (early, elsewhere, own, deferred, ungrouped)))[0])

    def _early(self, task: int, time: float, private: bool) -> set[bool]:
        """Return what the test for early faults may say."""
        low, high = self._history.seen(task, time)
        preferred = self._history.preferred(task, time)
        out = set()
        for seen, node in product({low, high}, [-1, 0] if preferred is None else [preferred]):
            said = pagefilter.is_early(self._kernel, np.array([node]), np.array([seen]), _one(private))
            out.add(bool(said[0]))
        return out

    def _group(self, row: int, time: float, target: int, members: list[tuple[int, ...]]) -> tuple[int | None, str]:
        """Weigh the nodes by the group's faults, for each group and source node that is possible."""
        if self._kernel.group_filter == "none":
            return 1, ""
        if self._kernel.group_filter == "memory":
            return None, ACTIVE
        d = self._recording.decisions
        moved = bool(d.flags[row] & MIGRATED)
        nodes = range(len(self._recording.distance))
        sources = [n for n in nodes if n != target] if moved else [int(d.node[row])]
        said: dict[tuple[int, int], set[bool]] = {}
        for i, group in enumerate(members):
            faults = self._history.group_faults(group, time)
            if faults is None:
                return None, SUMS
            for source in sources:
                said[i, source] = _allows(faults, source, target)
        everything = set().union(*said.values())
        if len(everything) == 1:
            return int(everything.pop()), ""
        if any(len(one) > 1 for one in said.values()):
            return None, CPU_SUMS
        same_group = all(len(set().union(*(said[i, s] for s in sources))) == 1 for i in range(len(members)))
        return None, JOIN if same_group else SOURCE


def _allows(faults: GroupFaults, source: int, target: int) -> set[bool]:
    """Return what the ratio may say: it favours the target most when the target's CPU faults are at their most."""
    out = set()
    for of_source, of_target in ((faults.cpu_low, faults.cpu_high), (faults.cpu_high, faults.cpu_low)):
        said = pagefilter.cpu_memory_allows(
            faults.mem[[source]], faults.mem[[target]], of_source[[source]], of_target[[target]]
        )
        out.add(bool(said[0]))
    return out


def _one(value: bool) -> Bools:
    return np.array([value])

"""What the replay of a trace found, as rows and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numalab import text
from numalab.decisions.answers import LOST, Answers, Branch
from numalab.decisions.groups import Joins
from numalab.decisions.periods import Scans
from numalab.decisions.preferences import Tally
from numalab.decisions.tasks import Sums
from numalab.model.pagefilter import BRANCHES
from numalab.readers.recorded import Recording


@dataclass(frozen=True)
class Replay:
    """The replay of one trace.

    Attributes
    ----------
    trace, release, kernel : str
        Name of the trace, release it was taken on, kernel of the table whose rules were applied.
    loss_s : float
        From when on events are missing; infinity when none is.
    recording : Recording
    answers : Answers
        Of the migration filter.
    sums : dict
        tid -> Sums.
    joins : dict
        tid -> Joins.
    preferred, group_sums : Tally
    scans : dict
        pid -> Scans.
    """

    trace: str
    release: str
    kernel: str
    loss_s: float
    recording: Recording
    answers: Answers
    sums: dict[int, Sums]
    joins: dict[int, Joins]
    preferred: Tally
    group_sums: Tally
    scans: dict[int, Scans]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per kind of decision and branch.

        Each has ``trace``, ``kernel``, ``what``, ``branch`` ("" where there are none), ``decidable``, ``equal``,
        ``agreement`` (equal of decidable, None of none), ``majority`` (what the kernel's more frequent answer, given
        always, would agree; None where answers are not yes and no), ``undecidable`` and ``reasons`` (reason -> number).
        """
        rows = [*self._filter_rows(), self._sums_row(), self._class_row()]
        joins = self.joins.values()
        founded, joined = (sum(getattr(j, name) for j in joins) for name in ("founded", "joined"))
        asked = sum(j.asked for j in joins)
        lost = {LOST: sum(j.lost for j in joins)}
        rows += [
            self._row("groups founded", "", founded, sum(j.founded_equal for j in joins), {}),
            self._row("groups joined", "", joined + asked, sum(j.joined_equal for j in joins), lost),
        ]
        unknown = "sums or members not known"
        for name, tally in (("group sums", self.group_sums), ("preferred node", self.preferred)):
            rows.append(self._row(name, "", tally.decidable, tally.equal, {unknown: tally.unknown}))
        scans = self.scans.values()
        lost = {LOST: sum(s.lost for s in scans)}
        rows.append(self._row("scan not before due", "", sum(s.due for s in scans), sum(s.kept for s in scans), lost))
        return rows

    def _filter_rows(self) -> list[dict[str, Any]]:
        reasons: dict[str, Counter[str]] = {}
        for (branch, reason), count in self.answers.undecidable.items():
            reasons.setdefault(branch, Counter())[reason] += count
        out = []
        for branch in _ordered(self.answers.branches.keys() | reasons.keys()):
            tally = self.answers.branches.get(branch, Branch())
            decidable = tally.yes + tally.no
            majority = max(tally.yes, tally.no) / decidable if decidable else None
            row = self._row("filter", branch or "(not known)", decidable, tally.equal, dict(reasons.get(branch, {})))
            out.append(row | {"majority": majority})
        return out

    def _sums_row(self) -> dict[str, Any]:
        sums = self.sums.values()
        changed, several, lost = (sum(getattr(s, name) for s in sums) for name in ("changed", "several", "lost"))
        equal = sum(s.equal for s in sums)
        return self._row("fault sums", "", changed - several, equal, {"several moments fit": several, LOST: lost})

    def _class_row(self) -> dict[str, Any]:
        """Count the faults whose class and node the printed sums confirm."""
        sums = self.sums.values()
        confirmed = sum(s.faults for s in sums)
        # a sample that does not come out leaves its faults in doubt: they count, and not as equal
        doubtful = sum(s.doubtful for s in sums)
        rest = len(self.recording.decisions.time) - confirmed - doubtful
        return self._row("private or shared", "", confirmed + doubtful, confirmed, {"in no printed sum": rest})

    def _row(self, what: str, branch: str, decidable: int, equal: int, reasons: dict[str, int]) -> dict[str, Any]:
        return {
            "trace": self.trace,
            "kernel": self.release,
            "what": what,
            "branch": branch,
            "decidable": int(decidable),
            "equal": int(equal),
            "agreement": equal / decidable if decidable else None,
            "majority": None,
            "undecidable": int(sum(reasons.values())),
            "reasons": {reason: int(count) for reason, count in reasons.items() if count},
        }

    def disagreements(self) -> list[str]:
        """Say when and where rule and kernel differ, one line each."""
        d = self.recording.decisions
        out = []
        for branch, answered in self.answers.branches.items():
            for call in answered.differ:
                said = "yes" if d.filter_answer[call] else "no"
                out.append(f"{d.filter_time[call]:.6f} s, task {d.filter_pid[call]}: filter ({branch}) said {said}")
        for name, tally in (("preferred node", self.preferred), ("group sums", self.group_sums)):
            out += [f"{time:.6f} s: {name}" for time in tally.differ]
        for tid, sums in self.sums.items():
            out += [f"{time:.6f} s, task {tid}: fault sums" for time in sums.differ]
        for pid, scans in self.scans.items():
            out += [f"{time:.6f} s, process {pid}: scan before it was due" for time in scans.early]
        return out


def _ordered(branches: Iterable[str]) -> list[str]:
    return sorted(branches, key=lambda name: BRANCHES.index(name) if name in BRANCHES else len(BRANCHES))


def table(replays: Sequence[Replay]) -> str:
    """Lay out the rows of replays, trace by trace, and under them each disagreement."""
    head = ("trace", "decision", "branch", "decidable", "equal", "agreement", "majority", "not decidable")
    rows, differ = [], []
    for replay in replays:
        for i, row in enumerate(replay.rows()):
            rows.append(_cells(row, replay.trace if i == 0 else ""))
        differ += [f"{replay.trace}: {line}" for line in replay.disagreements()]
    out = text.table(head, rows, right=range(3, 7))
    notes = [
        "majority: the share that always giving the kernel's more frequent answer in that branch would agree.",
        "Not decidable: the trace does not hold what the decision depends on; these are not in the shares.",
    ]
    found = ["", f"{len(differ)} disagreements:", *differ] if differ else ["No disagreement."]
    return "\n".join([out, *notes, *found])


def _cells(row: dict[str, Any], trace: str) -> tuple[str, ...]:
    reasons = ", ".join(f"{count} {reason}" for reason, count in row["reasons"].items())
    shares = (_share(row[name]) for name in ("agreement", "majority"))
    return (trace, row["what"], row["branch"], str(row["decidable"]), str(row["equal"]), *shares, reasons)


def _share(value: float | None) -> str:
    # 99.99 is not to be printed as 100
    return "" if value is None else f"{int(value * 1000) / 10:.1f} %"

"""What a diagnosis consists of: findings with their evidence, estimates of cost, and what was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Confidence = Literal["high", "medium", "low"]
Kind = Literal["illness", "information", "verdict"]


@dataclass(frozen=True)
class Evidence:
    """One number that carries a finding.

    Attributes
    ----------
    what : str
        Name of the number, with the side or node it belongs to.
    value : float or None
        None: the input does not have it.
    units : str
    source : str
        The input; empty for a dataset that came without a name.
    line : int
        Line of the input; 0: the input as a whole.
    """

    what: str
    value: float | None
    units: str = "1"
    source: str = ""
    line: int = 0


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Attributes
    ----------
    id : str
        Key of `numalab.diagnose.catalog.CATALOG`.
    kind : {"illness", "information", "verdict"}
        Only an illness is an alarm.
    says : str
        The finding in a sentence.
    evidence : tuple of Evidence
        Never empty.
    confidence : {"high", "medium", "low"} or None
        How sure the conclusion is; None where nothing is concluded: numbers that contradict each other, that are all 0,
        or that are too few.
    side : str
        Column, snapshot, process or node it is about; empty: all.
    why : str
        Why it matters.
    attempts : tuple of str
        What to try, the first first.
    kernels : tuple of (str, str)
        Release and commit that changed the rule; what it changed.
    thread : str
        Patch thread (`numalab threads`) that explains it; empty: none.
    sides : tuple of str
        Sides it was found in: many where it is said once of many samples; empty: the only one.
    """

    id: str
    kind: Kind
    says: str
    evidence: tuple[Evidence, ...]
    confidence: Confidence | None
    side: str
    why: str
    attempts: tuple[str, ...]
    kernels: tuple[tuple[str, str], ...]
    thread: str
    sides: tuple[str, ...] = ()

    @property
    def standing(self) -> str:
        """Its kind, and how sure it is where something is concluded."""
        return f"{self.kind}, confidence {self.confidence}" if self.confidence else self.kind


@dataclass(frozen=True)
class Cost:
    """What NUMA balancing cost on one side, estimated from its counters.

    Attributes
    ----------
    side : str
    accesses_millions, with_copy_millions : float
        mmtests' AutoNUMA cost, as it prints it and with the copying of pages, millions of memory accesses.
    cpu_seconds : float
        By the prices of faults, marks and copies in `numalab.model.params`.
    seconds : float or None
        Length of the record; None where the counts are since boot or the input does not say.
    meaning : tuple of str
        What each estimate counts and when to quote it; why they differ.
    assumptions : tuple of str
    """

    side: str
    accesses_millions: float
    with_copy_millions: float
    cpu_seconds: float
    seconds: float | None
    meaning: tuple[str, ...]
    assumptions: tuple[str, ...]

    @property
    def cpus_busy(self) -> float | None:
        """CPUs that the work kept busy on average; None without a length."""
        return self.cpu_seconds / self.seconds if self.seconds else None


@dataclass(frozen=True)
class Diagnosis:
    """All that `numalab.diagnose.diagnose` found.

    Attributes
    ----------
    findings : tuple of Finding
        Illnesses first, by confidence; then information and verdicts.
    costs : tuple of Cost
    looked_at : tuple of str
        Views of the machine that the inputs gave.
    remarks : tuple of str
        What is odd, but no finding.
    """

    findings: tuple[Finding, ...]
    costs: tuple[Cost, ...]
    looked_at: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def ids(self) -> list[str]:
        """Ids of the findings, each once."""
        return list(dict.fromkeys(one.id for one in self.findings))

    @property
    def illnesses(self) -> tuple[Finding, ...]:
        """Findings that are an alarm."""
        return tuple(one for one in self.findings if one.kind == "illness")

    def of(self, id: str) -> tuple[Finding, ...]:
        """Return the findings of one id."""
        return tuple(one for one in self.findings if one.id == id)

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain dicts, lists, strings and numbers."""
        return {
            "findings": [asdict(one) for one in self.findings],
            "costs": [asdict(one) | {"cpus_busy": one.cpus_busy} for one in self.costs],
            "looked_at": list(self.looked_at),
            "remarks": list(self.remarks),
        }

    def __str__(self) -> str:
        """Return the findings as text, each with its numbers and what to try."""
        return "\n\n".join(["\n".join(lines_of(one)) for one in self.findings])


_SURE = {None: 0, "high": 0, "medium": 1, "low": 2}
_KINDS = {"illness": 0, "information": 1, "verdict": 2}


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sort findings: alarms first, the surest first."""
    return tuple(sorted(findings, key=lambda one: (_KINDS[one.kind], _SURE[one.confidence])))


def lines_of(finding: Finding) -> list[str]:
    """Return one finding as lines of text."""
    side = f" ({finding.side})" if finding.side else ""
    out = [f"{finding.id}{side}: {finding.standing}", f"  {finding.says}"]
    out += ["  numbers:"] + [f"    {evidence_line(one)}" for one in finding.evidence]
    out += [f"  why it matters: {finding.why}"] if finding.why else []
    out += ["  try:"] + [f"    {one}" for one in finding.attempts] if finding.attempts else []
    out += [f"  kernel {release}: {what}" for release, what in finding.kernels]
    out += [f"  explained by the thread {finding.thread}"] if finding.thread else []
    return out


def evidence_line(one: Evidence) -> str:
    """Return one number with its place."""
    value = "missing" if one.value is None else f"{one.value:,.0f}" if abs(one.value) >= 10_000 else f"{one.value:.4g}"
    units = "" if one.units in ("", "1") or one.value is None else f" {one.units}"
    place = f"   [{one.source}:{one.line}]" if one.line else ""
    return f"{one.what}: {value}{units}{place}"

"""Small inputs with chosen numbers, as the tools print them."""

from numalab.diagnose import diagnose
from numalab.readers.mixed import read_text


def vmstat(**counts):
    """One snapshot of /proc/vmstat."""
    return "".join(f"{name} {value}\n" for name, value in counts.items())


def balancing(faults, local, migrated, pte=None, **further):
    """A snapshot with the counters of balancing; scanned: as many pages as faults, if not said."""
    names = {"numa_pte_updates": faults if pte is None else pte, "numa_hint_faults": faults}
    return vmstat(**names, numa_hint_faults_local=local, numa_pages_migrated=migrated, **further)


def log(samples):
    """A log of snapshots: (seconds, counters)."""
    return "".join(f"@ {seconds}\n{vmstat(**counts)}" for seconds, counts in samples)


def mmtests(rows):
    """A table of MMTests: label -> a value for each column."""
    return "".join(
        f"Ops {label:<36}" + "".join(f"{value:>16.2f}" for value in every) + "\n" for label, every in rows.items()
    )


def two(durations, pte, faults, local, migrated):
    """Two columns of MMTests: elapsed times, and the counters of balancing."""
    counters = {
        "NUMA base-page range updates": pte,
        "NUMA hint faults": faults,
        "NUMA hint local faults %": local,
        "NUMA pages migrated": migrated,
    }
    elapsed = "Duration Elapsed" + "".join(f"{value:>16.2f}" for value in durations) + "\n"
    return elapsed + mmtests(counters)


def found(*texts):
    """Diagnose texts, each an input of its own."""
    return diagnose(*(read_text(text, f"input{i}.txt") for i, text in enumerate(texts)))


def alarms(*texts):
    """Ids of the illnesses in texts."""
    return [one.id for one in found(*texts).illnesses]


def numbers(finding):
    """The evidence of a finding: what -> value."""
    return {one.what: one.value for one in finding.evidence}

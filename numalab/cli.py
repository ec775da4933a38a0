"""The command ``numalab``: what can be asked for, and how it ends.

Nothing here imports numpy or xarray, so help and wrong arguments are answered at once. Each command is a
function in :mod:`numalab.commands` that takes the parsed arguments, prints, and returns the exit code; its
module is imported when it is called.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from numalab import __version__
from numalab.commands import BAD_INPUT, CLOSED_PIPE, INTERNAL, INTERRUPTED, arguments, discard, fail, note

EXIT_CODES = """\
exit codes:
  0    done
  1    compared, and not equal (rerun)
  2    bad input: arguments, a file, a name; one line on stderr says what to do
  3    an error in numalab itself, with a traceback to report
  130  interrupted with Ctrl-C
  141  nobody read the output to its end, as with `| head`"""

#: Errors of writing a file that mean: choose another place.
_NO_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; default: those of the process.

    Returns
    -------
    int
        The exit code, as ``numalab --help`` lists them.
    """
    _open_closed_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say
            return _ending(argv)
    finally:
        try:
            sys.stderr.flush()
        except OSError:
            discard(sys.stderr)


def _open_closed_streams() -> None:
    """Connect standard streams that were closed (as with ``>&-``) to nowhere; Python has None for them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  for the rest of the process


def _say(message: Warning | str, *where: object, **how: object) -> None:
    """Show a warning as one line, without the place in numalab that gave it."""
    note(f"numalab: warning: {message}")


def _ending(argv: Sequence[str] | None) -> int:
    try:
        try:
            return _dispatch(argv)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Nobody reads on, as with `| head`.
        discard(sys.stdout)
        return CLOSED_PIPE
    except OSError as error:
        return fail(_os_error(error))
    except MemoryError:
        return fail("not enough memory; make the machine, the workload or the number of seeds smaller")
    except Exception as error:
        # numalab's own errors say what is wrong with the input; any other is a mistake in numalab.
        if isinstance(error, ValueError) and type(error).__module__.partition(".")[0] == "numalab":
            return fail(str(error))
        sys.excepthook(type(error), error, error.__traceback__)
        return fail("this is an error in numalab; please report it with the lines above", INTERNAL)


def _os_error(error: OSError) -> str:
    if error.filename and error.strerror:
        if error.errno in _NO_PLACE:
            return f"{error.filename}: {error.strerror.lower()}; give another -o"
        return f"{error.filename}: {error.strerror}"
    if error.errno in (*_NO_PLACE, errno.EBADF, errno.EIO) and error.strerror:
        # Files are named in their errors; only the standard streams have no name.
        discard(sys.stdout)
        return f"standard output: {error.strerror.lower()}"
    return str(error)


def _dispatch(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    args = parser.parse_args(argv)
    if "call" not in args:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    if getattr(args, "out", None) and hasattr(args, "file"):
        from numalab.commands.output import check_not_input

        check_not_input(Path(args.out), args.file)
    module, _, function = args.call.partition(":")
    return int(getattr(import_module(f"numalab.commands.{module}"), function)(args))


def make_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="numalab",
        description="Linux automatic NUMA balancing: replay it, see why, change a knob and look again.",
        epilog=f"`numalab COMMAND --help` describes a command, with examples.\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"numalab {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_threads(commands)
    _add_claims(commands)
    _add_runs(commands)
    _add_sweeps(commands)
    _add_plot(commands)
    _add_read(commands)
    _add_compare(commands)
    _add_diagnose(commands)
    _add_validate(commands)
    _add_live(commands)
    _add_record(commands)
    _add_twin(commands)
    _add_catalogs(commands)
    return parser


_Commands = argparse._SubParsersAction  # argparse has no public name for what add_subparsers returns


def _add(
    commands: _Commands[argparse.ArgumentParser], name: str, call: str, short: str, description: str, examples: str
) -> argparse.ArgumentParser:
    lines = [line.strip() for line in examples.strip().splitlines()]
    parser = commands.add_parser(
        name,
        help=short,
        description=description,
        epilog="\n  ".join(["examples:" if len(lines) > 1 else "example:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(call=call)
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for a program instead of text")


def _add_threads(commands: _Commands[argparse.ArgumentParser]) -> None:
    threads = _add(
        commands,
        "threads",
        "threads:threads",
        "list the patch threads that numalab is about",
        "List the five patch threads: the question each asks, its mail, and whether it is replayed yet.",
        "numalab threads",
    )
    _add_json(threads)
    replay = _add(
        commands,
        "replay",
        "threads:replay",
        "replay a patch thread: published figures beside the model's",
        "Run the model for a patch thread and print what the mail says beside what the model gives. Where the two\n"
        "disagree the table says so; that is a result, not an error (exit code 0).",
        """numalab replay convergence --seeds 4
        numalab replay all --seeds 12 -o runs
        numalab replay convergence --stored            the shipped results of the next
        numalab replay convergence --full -o runs      every variant, 30 seeds; takes long""",
    )
    replay.add_argument("thread", metavar="THREAD", help="a name that `numalab threads` lists, or: all")
    replay.add_argument(
        "--seeds", type=arguments.count, metavar="N", help="runs of each variant (default: the thread's own)"
    )
    replay.add_argument(
        "--full", action="store_true", help="every variant of the thread, at the number of seeds quoted"
    )
    replay.add_argument("--stored", action="store_true", help="print the shipped results of a full replay, run nothing")
    replay.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        help="write datasets (.nc, each case once finished), figures (.png) and text (.txt) here, over older ones",
    )
    _add_json(replay)


def _add_claims(commands: _Commands[argparse.ArgumentParser]) -> None:
    claims = _add(
        commands,
        "claims",
        "claims:claims",
        "every figure of the mails beside the model's: what holds, what was fitted",
        "Print each published figure or word, the model's median and 90 % band over seeds, what a real kernel's run\n"
        "shows of it, and whether the model agrees; count the rows that hold, and list the constants that were fitted\n"
        "(rows they were fitted to do not count). From the shipped results of full replays: nothing is run.",
        """numalab claims
        numalab claims convergence policy_lock
        numalab claims --json                          a list of rows for programs""",
    )
    claims.add_argument(
        "threads", metavar="THREAD", nargs="*", help="names that `numalab threads` lists (default: all)"
    )
    _add_json(claims)


def _add_runs(commands: _Commands[argparse.ArgumentParser]) -> None:
    run = _add(
        commands,
        "run",
        "runs:run",
        "simulate what a TOML file describes",
        "Simulate the machine, workload and kernel of a description file, print a summary and save the dataset.\n"
        "Interrupted with Ctrl-C it saves the time that all runs have reached.",
        """numalab run mine.toml
        numalab run mine.toml -o runs/first.nc --force""",
    )
    run.add_argument("file", metavar="FILE.toml", help="tables [machine], [workload], [kernel] and [run]")
    run.add_argument("-o", "--out", metavar="RUN.nc", help="where to save (default: runs/FILE.nc)")
    run.add_argument("--force", action="store_true", help="overwrite what is there")
    _add_json(run)
    show = _add(
        commands,
        "show",
        "runs:show",
        "summarise a saved run, simulated or measured",
        "Say what a dataset is, how it was made, and what came out: counters, local share, convergence, moves.",
        """numalab show runs/mine.nc
        numalab show runs/mine.nc --json""",
    )
    show.add_argument("file", metavar="RUN.nc")
    _add_json(show)
    rerun = _add(
        commands,
        "rerun",
        "runs:rerun",
        "repeat a saved simulation and compare",
        "Simulate a dataset again from what it says about itself. Exit code 0: equal in every variable; 1: not.",
        "numalab rerun runs/mine.nc",
    )
    rerun.add_argument("file", metavar="RUN.nc")
    _add_json(rerun)


def _add_sweeps(commands: _Commands[argparse.ArgumentParser]) -> None:
    sweep = _add(
        commands,
        "sweep",
        "sweep:sweep",
        "simulate many setups into one store, in processes or on a cluster; or say how far it is",
        "Simulate everything that the table [sweep] of a description file spans, with every seed, into a zarr store.\n"
        "Interrupted or killed, the same command continues, and the store ends the same. Runs that fail are told and\n"
        "do not stop the others. Of a store: say how far it is. docs/sweeps.md describes the file.",
        """numalab sweep mine.toml --dry-run            how many runs, how long
        numalab sweep mine.toml -o runs/mine.zarr --workers 8
        numalab sweep mine.toml --scheduler tcp://cluster:8786
        numalab sweep runs/mine.zarr                 how far it is, and what failed
        numalab sweep runs/mine.zarr --resume""",
    )
    sweep.add_argument("target", metavar="FILE.toml | STORE", help="a description with a table [sweep], or a store")
    sweep.add_argument("-o", "--out", metavar="STORE", help="a folder (default: runs/FILE.zarr)")
    sweep.add_argument(
        "--workers", type=arguments.count, metavar="N", help="processes (default: one for each processor)"
    )
    sweep.add_argument("--scheduler", metavar="ADDRESS", help="of a dask.distributed cluster, in place of processes")
    sweep.add_argument("--dry-run", action="store_true", help="count, and estimate from the first batch; store nothing")
    sweep.add_argument("--resume", action="store_true", help="continue the sweep of a store")
    sweep.add_argument("--retry-failed", action="store_true", help="continue, and run again what failed")
    sweep.add_argument(
        "--any-revision", action="store_true", help="continue even what another version of numalab began"
    )
    _add_json(sweep)
    sensitivity = _add(
        commands,
        "sensitivity",
        "sweep:sensitivity",
        "say which factor of a sweep matters for a quantity",
        "Of a sweep with [sweep.morris] or [sweep.sobol]: how much each factor matters for a quantity, with 95 %\n"
        "intervals, and how much of it is the noise of the seeds.",
        """numalab sensitivity runs/mine.zarr local_share
        numalab sensitivity runs/mine.zarr converged_s --json""",
    )
    sensitivity.add_argument("store", metavar="STORE")
    sensitivity.add_argument("quantity", metavar="QUANTITY", help="such as converged_s, local_share, system_s")
    _add_json(sensitivity)


def _add_plot(commands: _Commands[argparse.ArgumentParser]) -> None:
    plot = _add(
        commands,
        "plot",
        "plot:plot",
        "draw a saved run, or several beside each other; or print the same as text",
        "Draw one picture of one or several datasets, simulated or measured, beside each other. Seeds become bands.\n"
        "KIND: pages (memory by node over time), nodes (where each task runs, moves and swaps marked), astray (tasks\n"
        "not with their process), local (share of local hint faults), scan (scan period), waiting (tasks waiting),\n"
        "perf (threads by node as perf bench prints them), faults (by task and node of the memory), moves (moves and\n"
        "swaps by gain). Of a sweep: response (a quantity over a factor, a curve for each value of another), heatmap\n"
        "(over two factors).",
        """numalab plot runs/mine.nc pages -o pages.png
        numalab plot before=runs/old.nc after=runs/new.nc nodes -o nodes.svg
        numalab plot runs/mine.nc local --text
        numalab plot runs/mine.zarr response --of converged_s --x scan_size_mb --by kernel -o curves.png""",
    )
    # argparse has no way to say: one of two, or both
    plot.usage = "numalab plot [-h] (-o FILE | --text | -o FILE --text) [--force] [NAME=]RUN.nc [...] KIND"
    plot.add_argument("files", metavar="[NAME=]RUN.nc", nargs="+", help="or the store of one sweep")
    plot.add_argument("kind", metavar="KIND")
    plot.add_argument("--of", metavar="QUANTITY", help="of a sweep (default: local_share)")
    plot.add_argument("--x", metavar="FACTOR", help="of a sweep: the horizontal axis (default: the first)")
    plot.add_argument("--by", metavar="FACTOR", help="of a sweep: curves of response, rows of heatmap")
    plot.add_argument("-o", "--out", metavar="FILE", help="where to save, .png or .svg; this, --text or both")
    plot.add_argument("--text", action="store_true", help="print a table and a sentence")
    plot.add_argument("--force", action="store_true", help="overwrite what is there")


def _add_read(commands: _Commands[argparse.ArgumentParser]) -> None:
    read = _add(
        commands,
        "read",
        "read:read",
        "read the output of real tools, and say what was understood",
        "Read files or pastes, say line by line what was understood, guessed and skipped, and optionally save a\n"
        "dataset that every plot and table takes. A text may hold the output of several tools, with prompts,\n"
        "quote marks and remarks between. Formats: /proc/vmstat, zoneinfo, PID/sched and PID/numa_maps; numastat\n"
        "(all forms), nodeN/numastat and meminfo, `numactl -H`, memory.numa_stat and memory.stat of cgroups,\n"
        "`mpstat -N`; perf bench numa, stat, report, lock and script, ftrace and trace-cmd; funclatency,\n"
        "numamove; tables of LKP and MMTests, logs of autonuma-benchmark; logs of these with lines `@ <seconds>`\n"
        "between; logs of `numalab record`; folders of whole runs.",
        """numalab read bench.txt -o runs/bench.nc
        numalab read /proc/vmstat /proc/self/numa_maps
        numalab read data/traces/c_swap_2x2_r1
        (numactl -H; grep numa /proc/vmstat) | numalab read - --json""",
    )
    read.add_argument(
        "files", metavar="FILE", nargs="+", help="a text file, the folder of a run, or - for standard input"
    )
    read.add_argument("--format", metavar="NAME", help="do not guess the format (perf-bench-numa, vmstat, sched ...)")
    read.add_argument("--kernel", metavar="RELEASE", help="kernel a /proc/PID/sched is from, such as 4.15 (uname -r)")
    read.add_argument("-o", "--out", metavar="OUT.nc", help="save as a dataset")
    read.add_argument("--force", action="store_true", help="overwrite what is there")
    _add_json(read)


def _add_compare(commands: _Commands[argparse.ArgumentParser]) -> None:
    compare = _add(
        commands,
        "compare",
        "compare:main",
        "compare sets of runs, as LKP and MMTests print it, with significance",
        "Compare two or more sides with the first: as a table for a mail, and below it what is more than noise and\n"
        "how many runs would tell. A side is [NAME=]PATH: a dataset with several seeds (where kernels or parameters\n"
        "vary in it, a side each), the folder of a measured run, a directory or quoted pattern of these, output of a\n"
        "tool, or a table of LKP or MMTests, each column of which is a side; - is standard input.",
        """numalab compare base=runs/old.nc patched=runs/new.nc
        numalab compare runs/old.nc runs/new.nc --style lkp --rows 'numa_*,converge*' --table
        numalab compare base='data/traces/S2_write_base_r*' p1='data/traces/S2_write_p1_r*'
        numalab compare report.txt --runs 6 --style mmtests      an LKP mail, means over 6 runs each""",
    )
    compare.add_argument("sides", metavar="[NAME=]PATH", nargs="+", help="the first is the base")
    compare.add_argument(
        "--style", choices=("mmtests", "lkp", "lkp-2014"), default="mmtests", help="of the table (default: mmtests)"
    )
    compare.add_argument("--rows", metavar="NAME,...", help="only these quantities; * and ? stand for any letters")
    compare.add_argument(
        "--effect",
        metavar="PERCENT",
        type=arguments.percent,
        default=5.0,
        help="change that one wants to see (default: 5)",
    )
    compare.add_argument(
        "--runs",
        metavar="N,...",
        type=arguments.counts,
        help="runs behind the means of a table: one number, or one a column",
    )
    compare.add_argument(
        "--all",
        action="store_true",
        help="every quantity (default: what changed beyond noise, and what is better or worse; --rows: all that fit)",
    )
    compare.add_argument("--table", action="store_true", help="print the table only")
    _add_json(compare)


def _add_diagnose(commands: _Commands[argparse.ArgumentParser]) -> None:
    diagnose = _add(
        commands,
        "diagnose",
        "diagnose:main",
        "name the known illness of NUMA balancing in a machine's numbers",
        "Look for the known illnesses of automatic NUMA balancing in what tools and the kernel print, in runs and in\n"
        "tables of LKP and MMTests: all that `numalab read` takes, and .nc. Each finding has the numbers that decided\n"
        "and their lines, how sure it is, why it matters and what to try. Inputs given together are of one machine;\n"
        "their sides are compared with each other. What balancing cost is estimated, with the assumptions.",
        """numalab diagnose before.txt after.txt
        (numactl -H; numastat; cat /proc/vmstat) | numalab diagnose -
        numalab diagnose runs/own.nc --json""",
    )
    diagnose.add_argument(
        "files", metavar="INPUT", nargs="+", help="a text, a folder, a run (.nc), or - for standard input"
    )
    _add_json(diagnose)


def _add_validate(commands: _Commands[argparse.ArgumentParser]) -> None:
    validate = _add(
        commands,
        "validate",
        "validate:validate",
        "judge the model by runs of real kernels",
        "For each run of a real kernel build the same machine, load and kernel in the model, run it with many seeds,\n"
        "and print quantity by quantity what was real and what the model gives: inside or outside. Repetitions of a\n"
        "case are judged together. Interrupted with Ctrl-C it prints the finished cases.",
        """numalab validate b_wrongnode_bound_2x2_r1
        numalab validate S1_p4t2_old_r1 S1_p4t2_new_r1 --seeds 8 -o runs/validation
        numalab validate ../my-traces/run7             a folder of either layout
        numalab validate --decisions c_swap_2x2_r1     every decision of the kernel beside numalab's rules
        numalab validate --stored                      the shipped results of the next
        numalab validate                               all that come with numalab, 30 seeds; takes long""",
    )
    validate.add_argument("runs", metavar="RUN", nargs="*", help="a trace that comes with numalab, or a folder of one")
    validate.add_argument(
        "--seeds", type=arguments.count, metavar="N", help="runs of the model for each case (default: 30)"
    )
    validate.add_argument("--decisions", action="store_true", help="replay recorded decisions instead of whole runs")
    validate.add_argument("--stored", action="store_true", help="print the shipped results, run nothing")
    validate.add_argument("-o", "--out", metavar="DIR", help="write a figure and the rows of each case here")
    _add_json(validate)


def _add_live(commands: _Commands[argparse.ArgumentParser]) -> None:
    live = _add(
        commands,
        "live",
        "live:shared_cow",
        "run the program of a patch thread on this machine",
        "Run the program of a patch thread on this machine, with the kernel's counters beside it.\n"
        "`numalab live PROGRAM --help` describes a program.",
        "numalab live shared-cow --processes 8 --seconds 10",
    )
    programs = live.add_subparsers(title="programs", metavar="PROGRAM", required=True)
    cow = _add(
        programs,
        "shared-cow",
        "live:shared_cow",
        "forked readers of one array that they share copy-on-write",
        "Fork processes that sum one array over and over, which none of them writes, and print the passes of each\n"
        "beside what the machine's NUMA counters did: run it with balancing off and on, and compare. A machine\n"
        "without NUMA balancing says so, and measures. Ctrl-C ends all readers and prints what was done.",
        """numalab live shared-cow --processes 8 --seconds 10
        numalab live shared-cow --processes 288 --seconds 10 -o runs/on.nc""",
    )
    cow.add_argument("--processes", type=arguments.count, metavar="N", required=True, help="readers (the mail: 288)")
    cow.add_argument(
        "--seconds", type=arguments.seconds, metavar="S", required=True, help="how long each reads (the mail: 10)"
    )
    cow.add_argument(
        "--ints", type=arguments.count, metavar="N", default=1_000_000, help="length of the array (default: 1000000)"
    )
    cow.add_argument(
        "--folder", metavar="DIR", default="/var/tmp", help="for the array's file, on a disk (default: /var/tmp)"
    )
    cow.add_argument("-o", "--out", metavar="OUT.nc", help="save as a dataset")
    cow.add_argument("--force", action="store_true", help="overwrite what is there")
    _add_json(cow)


def _add_record(commands: _Commands[argparse.ArgumentParser]) -> None:
    record = _add(
        commands,
        "record",
        "record:main",
        "record what this machine's kernel shows of NUMA balancing",
        "Look at counters, nodes, tasks, their NUMA statistics and large memory maps at each interval, and make a\n"
        "run of it that every plot and table takes. Any user may; what needs root is named and left out. Recorded\n"
        "are all processes, some and their descendants, those of a cgroup, or a command's; until time is up, they\n"
        "have all ended (later ones are not waited for), or Ctrl-C. Each interval is appended to RUN.record.log at\n"
        "once: of a recorder that was killed all but the last interval is there (--recover; `numalab read` takes it\n"
        "too). Where looking at statistics and maps each time would use more than 1 % of one CPU (--cpu) it does so\n"
        "less often, and says so.",
        """numalab record -o runs/machine.nc --for 60s
        numalab record --pid 4711 -o runs/database.nc
        numalab record -o runs/bench.nc -- perf bench numa mem -p 4 -t 2 -P 64
        numalab record -o runs/live.nc -- numalab live shared-cow --processes 8 --seconds 10
        numalab record --recover runs/machine.record.log -o runs/machine.nc""",
    )
    record.add_argument(
        "--pid",
        type=arguments.count,
        action="append",
        metavar="P",
        help="a process and its descendants; ends when all have ended",
    )
    record.add_argument(
        "--cgroup",
        metavar="G",
        help="a cgroup: its folder, or its path below /sys/fs/cgroup; ends when no task is left in it",
    )
    record.add_argument("command", metavar="COMMAND", nargs="*", help="after --: a program to start and record")
    record.add_argument(
        "--every", type=arguments.interval, default=1.0, metavar="TIME", help="between two looks (default: 1s)"
    )
    record.add_argument(
        "--for", type=arguments.duration, dest="seconds", metavar="TIME", help="how long (default: until it ends)"
    )
    record.add_argument(
        "--cpu",
        type=arguments.percent,
        default=1.0,
        metavar="PERCENT",
        help="of one CPU: statistics and memory maps wait where it would use more (default: 1)",
    )
    record.add_argument("-o", "--out", metavar="RUN.nc", required=True, help="where to save the run")
    record.add_argument("--recover", metavar="LOG", help="make the run of a log that a killed recorder left")
    record.add_argument("--keep-log", action="store_true", help="do not remove the log when the run is saved")
    record.add_argument("--force", action="store_true", help="overwrite what is there")
    _add_json(record)


def _add_twin(commands: _Commands[argparse.ArgumentParser]) -> None:
    twin = _add(
        commands,
        "twin",
        "twin:main",
        "build a recorded machine and its processes in the model, and ask what would be if",
        "Make machine, processes, memory and kernel of the model from a recording, run it with several seeds for as\n"
        "long as the recording lasts, and print what was recorded beside the twin's median and 90 % band. How memory\n"
        "is touched is fitted; what else is assumed is said. Where the twin does not fit the recording it warns, with\n"
        "each what-if again. Where the recording does not tell how often memory is touched, each what-if is run at\n"
        "both ends of what it may be, with 4 seeds.\n\n"
        "It takes minutes: fitting runs the model 14 times for each way of touching memory, as long as the recording\n"
        "lasts; then come the seeds, and for each what-if as many runs again. Fewer --seeds are quicker, and so is\n"
        "--rate, with which nothing is fitted.\n\n"
        "A what-if is one or several of these, with commas between:\n"
        "  off, on            NUMA balancing off or on (also numa_balancing=0 or 1)\n"
        "  kernel=RELEASE     rules of another release or tree; recorded settings stay\n"
        "  patch=NAME         with a patch\n"
        "  scan_size_mb=64    a setting by its name in debugfs or sysctl, or any switch of `numalab kernels`\n"
        "  remote_cost=1000   a parameter of the model\n"
        "  bind=NODE          tasks and memory bound to a node, or to several: bind=0+1\n"
        "  cpubind=NODE       tasks bound, memory as recorded\n"
        "  interleave         memory interleaved over all nodes",
        """numalab twin runs/mine.nc
        numalab twin runs/mine.nc --what-if off --what-if kernel=6.14 --what-if scan_size_mb=64,bind=0
        numalab twin data/traces/b_wrongnode_bound_2x2_r1 --seeds 8 -o runs/twin.png""",
    )
    twin.add_argument(
        "file", metavar="RECORDED", help="a run that was recorded: .nc, its folder, or the recorder's log"
    )
    twin.add_argument(
        "--what-if",
        metavar="CHANGE",
        action="append",
        default=[],
        help="compare with the twin as it is; may come again",
    )
    twin.add_argument("--seeds", type=arguments.count, metavar="N", help="runs of each (default: 12)")
    twin.add_argument(
        "--rate", type=arguments.rate, metavar="PAGES", help="pages that each thread visits a second (default: fitted)"
    )
    twin.add_argument("-o", "--out", metavar="OUT", help="save the twin's runs (.nc), or a figure (.png, .svg)")
    twin.add_argument("--force", action="store_true", help="overwrite what is there")
    _add_json(twin)


def _add_catalogs(commands: _Commands[argparse.ArgumentParser]) -> None:
    kernels = _add(
        commands,
        "kernels",
        "kernels:kernels",
        "list kernels and their switches, or what differs between two",
        "Without a name: every release, tree, patch and switch. NAME: a release or tree (all its values), a patch\n"
        "(what it sets) or a switch. diff A B: the switches that differ between two kernels. Values marked ? were\n"
        "inferred from neighbouring releases; the others were read in a tree of that release.",
        """numalab kernels
        numalab kernels 6.1
        numalab kernels move_in_swap
        numalab kernels diff 3.16 3.17""",
    )
    kernels.add_argument("names", metavar="NAME | diff A B", nargs="*")
    _add_json(kernels)
    for name, what, example in (
        ("machines", "machine presets", "rik-4n80"),
        ("workloads", "named workloads", "perf_bench_numa"),
    ):
        catalog = _add(
            commands,
            name,
            f"catalogs:{name}",
            f"list the {what}, or one in detail",
            f'List the {what} that a description file can ask for with preset = "..."; with NAME one in detail.',
            f"numalab {name}\nnumalab {name} {example}",
        )
        catalog.add_argument("name", metavar="NAME", nargs="?")
        _add_json(catalog)

"""``numalab claims``: every figure of the mails beside the model's, and what was fitted."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from numalab import patch_threads
from numalab.commands import OK, CommandError
from numalab.commands.output import note, print_json
from numalab.patch_threads import claims as gathered
from numalab.records import nearest


def claims(args: Namespace) -> int:
    """Print the claims of some threads, or of all that can be replayed, from their stored results."""
    replays = gathered.stored(_chosen(args.threads))
    every = [claim for one in replays for claim in one.claims]
    if args.json:
        print_json([claim.to_dict() for claim in every])
        return OK
    for one in replays:
        title = patch_threads.THREADS[one.thread].title
        print(f"{one.thread}: {title}\n\n{gathered.claims_table(one.claims, tolerance=True)}\n")
    print(gathered.summary(every))
    print('"Judged" are rows with a tolerance that nothing was fitted to; "-" stands for the others.')
    print('"Not in the mail" are controls and traces of a real kernel: judged and counted, but nobody published them.')
    constants = gathered.fitted(replays)
    if constants:
        print(f"\nFitted constants\n{gathered.fitted_table(constants)}")
    return OK


def _chosen(names: Sequence[str]) -> list[str]:
    known, ready = patch_threads.THREADS, gathered.ready()
    for name in names:
        if name not in known:
            raise CommandError(f"no patch thread {name!r}{nearest(name, known)}")
        if name not in ready:
            raise CommandError(f"the thread {name} is planned, not replayed yet; ready: {', '.join(ready)}")
    planned = [name for name in known if name not in ready]
    if planned and not names:
        note(f"not replayed yet, only planned: {', '.join(planned)}")
    return list(dict.fromkeys(names)) or ready

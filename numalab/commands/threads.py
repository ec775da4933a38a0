"""``numalab threads`` and ``numalab replay``: the patch threads, and the model beside their mails."""

from __future__ import annotations

import io
import re
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numalab import patch_threads
from numalab.commands import OK, CommandError
from numalab.commands.output import columns, note, plural, print_json, to_json
from numalab.records import nearest

if TYPE_CHECKING:
    import xarray as xr

    from numalab.patch_threads import Replay


def threads(args: Namespace) -> int:
    """List the patch threads."""
    known = patch_threads.THREADS.values()
    if args.json:
        keys = ("name", "title", "question", "mail", "ready")
        print_json([{key: getattr(thread, key) for key in keys} for thread in known])
        return OK
    head = ("NAME", "STATUS", "MAIL", "QUESTION")
    rows = [(t.name, "replayed" if t.ready else "planned", _date(t.mail), t.question) for t in known]
    print(columns([head, *rows]))
    print("\n`numalab replay NAME` prints the mail's figures beside the model's.")
    return OK


def _date(mail: str) -> str:
    found = re.search(r"\d{4}-\d\d-\d\d", mail)
    return found[0] if found else mail


def replay(args: Namespace) -> int:
    """Replay one thread, or all that can be."""
    folder = Path(args.out) if args.out else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder}: expected a folder for the results, found a file; give -o another name")
    chosen = _chosen(args.thread)
    options: dict[str, Any] = {"full": args.full, "progress": True}
    if args.stored:
        if args.full or args.seeds is not None:
            raise CommandError("--stored runs nothing: it goes without --full and --seeds")
        options["stored"] = True
    if args.seeds is not None:
        options["seeds"] = args.seeds
    answers: dict[str, Any] = {}
    for position, name in enumerate(chosen):
        written: list[Path] = []
        if folder is not None:
            options["keep"] = partial(_keep, folder, name, written)
        result = _replay(name, options)
        if folder is not None:
            _write(folder, name, result, written)
        if args.json:
            answers[name] = {"claims": [claim.to_dict() for claim in result.claims], "files": list(map(str, written))}
        else:
            print(("\n" if position else "") + result.text.rstrip("\n"), flush=True)
        _say_written(written)
        if result.interrupted:
            raise KeyboardInterrupt
    if args.json:
        print_json(answers)
    return OK


def _replay(name: str, options: Mapping[str, Any]) -> Replay:
    try:
        return patch_threads.replay(name, **options)
    except ValueError as error:
        # The arguments were checked before, so what is wrong now is not the user's input.
        raise RuntimeError(f"replay of {name}: {error}") from error


def _chosen(name: str) -> list[str]:
    known = patch_threads.THREADS
    ready = [thread.name for thread in known.values() if thread.ready]
    if name == "all":
        planned = [other for other in known if other not in ready]
        if planned:
            note(f"not replayed yet, only planned: {', '.join(planned)}")
        return ready
    if name not in known:
        raise CommandError(f"no patch thread {name!r}{nearest(name, known)}")
    if name not in ready:
        raise CommandError(f"the thread {name} is planned, not replayed yet; ready: {', '.join(ready)}")
    return [name]


def _keep(folder: Path, name: str, written: list[Path], key: str, ds: xr.Dataset) -> None:
    """Save the dataset of a case that is finished, so that whatever ends the replay leaves it."""
    from numalab import runs

    folder.mkdir(parents=True, exist_ok=True)
    written.append(runs.save(ds, folder / f"{name}-{key}.nc"))


def _write(folder: Path, name: str, result: Replay, written: list[Path]) -> None:
    """Write what all cases of a replay gave together; each file appears whole or not at all."""
    from numalab import runs

    folder.mkdir(parents=True, exist_ok=True)
    for key, figure in result.figures.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=150, bbox_inches="tight")
        written.append(runs.write_whole(folder / f"{name}-{key}.png", picture.getvalue()))
    written.append(runs.write_whole(folder / f"{name}.txt", result.text.encode()))
    if result.results:
        written.append(runs.write_whole(folder / f"{name}-results.json", to_json(result.results).encode()))


def _say_written(written: list[Path]) -> None:
    if not written:
        return
    note(f"wrote {plural(len(written), 'file')}:")
    for path in written:
        note(f"  {path}")
    first = next((path for path in written if path.suffix == ".nc"), None)
    if first is not None:
        note(f'summary of one: numalab show {first}; in Python: numalab.open("{first}"); notebooks: make lab')

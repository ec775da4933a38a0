"""``numalab read``: the text of a real tool or the folder of a run, what was understood, and the dataset it makes."""

from __future__ import annotations

import gzip
import sys
import zlib
from argparse import Namespace
from itertools import groupby, pairwise
from pathlib import Path

from numalab.commands import OK, CommandError
from numalab.commands.output import check_free, note, plural, print_json, wrap
from numalab.readers import formats
from numalab.readers.formats import Found, Reading, Skipped


def read(args: Namespace) -> int:
    """Read a file, a run folder or standard input, report line by line, and save if asked."""
    target = Path(args.out) if args.out else None
    if target is not None:
        check_free(target, args.force)
    if args.file != "-" and Path(args.file).is_dir():
        if args.format or args.kernel:
            raise CommandError(f"{args.file}: is a folder, whose meta.json says all; leave out --format and --kernel")
        reading = formats.read_folder(Path(args.file))
    else:
        reading = formats.read(*_text(args.file), args.format, args.kernel)
    if target is not None:
        from numalab import runs

        runs.save(reading.dataset(), target)
    if args.json:
        print_json({**reading.to_dict(), "saved": str(target) if target else None})
    else:
        _print(reading)
    if target is not None:
        note(f"saved {target}; look at it with numalab show {target}")
    return OK


def _text(file: str) -> tuple[str, str]:
    if file == "-":
        data, source = sys.stdin.buffer.read(), "<stdin>"
    else:
        data, source = Path(file).read_bytes(), file
        if data[:2] == b"\x1f\x8b":
            try:
                data = gzip.decompress(data)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise CommandError(f"{source}: cannot be unpacked ({error}); copy the file again") from error
    if not data.strip():
        raise CommandError(f"{source}: is empty; expected the output of a tool")
    return data.decode("utf-8", errors="replace"), source


def _print(reading: Reading) -> None:
    print(f"{reading.source}: {reading.format}, {plural(reading.lines, 'line')}")
    print("understood:")
    for found in reading.understood:
        print(wrap(_where(found) + found.what, 2, 6))
    if reading.missing:
        print("missing:")
        for found in reading.missing:
            print(wrap(_where(found) + found.what, 2, 6))
    if not reading.skipped:
        print("skipped: nothing")
        return
    print(f"skipped: {plural(len({(skip.file, skip.line) for skip in reading.skipped}), 'line')}")
    for block in _blocks(reading.skipped):
        first, last = block[0], block[-1]
        lines = f"line {first.line}" if first.line == last.line else f"lines {first.line}-{last.line}"
        lines = f"{first.file}, {lines}" if first.file else lines
        text = first.text.strip()
        text = repr(text if len(text) <= 50 else text[:50] + "...")
        print(wrap(f"{lines}: {text}{' and so on' if len(block) > 1 else ''}: {first.reason}", 2, 6))


def _where(found: Found) -> str:
    parts = [found.file] if found.file else []
    parts += [f"line {found.line}"] if found.line else []
    return ", ".join(parts) + ": " if parts else ""


def _blocks(skipped: tuple[Skipped, ...]) -> list[list[Skipped]]:
    """Put neighbouring lines skipped for the same reason together."""
    # Blank lines belong to nobody, so neighbours may be a few lines apart.
    breaks, number = [0], 0
    for before, after in pairwise(skipped):
        number += (before.file, before.reason) != (after.file, after.reason) or after.line - before.line > 3
        breaks.append(number)
    return [[skip for _, skip in block] for _, block in groupby(zip(breaks, skipped, strict=True), key=lambda p: p[0])]

"""The commands of ``numalab``, one module for each family; `numalab.cli` parses, these answer.

Here are the exit codes and the error they share; nothing is imported that ``numalab --help`` would wait for.
"""

import contextlib
import os
import sys
from typing import TextIO

OK, DIFFERENT, BAD_INPUT, INTERNAL = 0, 1, 2, 3
#: As a shell reports a death by SIGINT and SIGPIPE.
INTERRUPTED, CLOSED_PIPE = 130, 141


class CommandError(ValueError):
    """Input a command cannot use; the message says what was expected and what to do."""


def fail(message: str, code: int = BAD_INPUT) -> int:
    """Print one line on stderr and return the exit code."""
    note(f"numalab: {message}")
    return code


def note(message: str) -> None:
    """Print one line on stderr, where it does not disturb JSON; nowhere if that cannot be written."""
    try:
        print(message, file=sys.stderr)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Let what is still to be written to a stream go nowhere: Python flushes once more at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

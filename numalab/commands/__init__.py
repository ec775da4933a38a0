"""The commands of ``numalab``, one module for each family; `numalab.cli` parses, these answer.

Here are the exit codes and the error they share; nothing is imported that ``numalab --help`` would wait for.
"""

import sys

OK, DIFFERENT, BAD_INPUT, INTERNAL = 0, 1, 2, 3
#: As a shell reports a death by SIGINT and SIGPIPE.
INTERRUPTED, CLOSED_PIPE = 130, 141


class CommandError(ValueError):
    """Input a command cannot use; the message says what was expected and what to do."""


def fail(message: str, code: int = BAD_INPUT) -> int:
    """Print one line on stderr and return the exit code."""
    print(f"numalab: {message}", file=sys.stderr)
    return code

"""The command line, called within the test."""

from numalab.cli import main


def caller(capsys, *first):
    """Return what calls numalab with these first words and more: exit code, stdout, stderr."""

    def call(*args):
        try:
            code = main([*first, *map(str, args)])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call

"""Commands of the traces: chains of programs, their options, and what a program amounts to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numalab.records import nearest
from numalab.workload import Access, Binding, Processes, Region


class ScenarioError(ValueError):
    """A trace of which no scenario can be made: names the file and the key or argument, and what was expected."""


@dataclass(frozen=True)
class Piece:
    """What one program amounts to in the model.

    Attributes
    ----------
    processes, regions, accesses, bindings
        As in :class:`numalab.workload.Workload`.
    busy : float
        vCPUs it keeps busy.
    seconds : float or None
        When it ends, counted from its start; None: it ends with its work.
    notes : tuple of str
    many_mappings : bool
        Its pages are mapped by many processes.
    hog_mb : float or None
        Memory it leaves above the high watermark of each node.
    """

    processes: tuple[Processes, ...]
    regions: tuple[Region, ...]
    accesses: tuple[Access, ...] = ()
    bindings: tuple[Binding, ...] = ()
    busy: float = 1.0
    seconds: float | None = None
    notes: tuple[str, ...] = ()
    many_mappings: bool = False
    hog_mb: float | None = None


def programs(command: str) -> list[list[str]]:
    """Split ``a x; b y`` into the words of its programs.

    Raises
    ------
    ScenarioError
        No program, or quotes that do not close.
    """
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|<>")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError as error:
        raise ScenarioError(f"command {command!r}: {error}") from error
    chain: list[list[str]] = [[]]
    for word in words:
        if re.fullmatch(r"[;&|<>]+", word):
            if word not in (";", "&&"):
                raise ScenarioError(f"command {command!r}: expected programs one after the other (;), got {word!r}")
            chain.append([])
        else:
            chain[-1].append(word)
    found = [program for program in chain if program]
    if not found:
        raise ScenarioError(f"command: expected a program and its options, got {command!r}")
    return found


@dataclass(frozen=True)
class Options:
    """Options of a program, by their one letter.

    Attributes
    ----------
    program : str
        For messages.
    given : dict
        Letter to its argument; flags to "1", or "0" where negated (``--no-NAME``).
    """

    program: str
    given: Mapping[str, str]

    @classmethod
    def read(
        cls, program: str, words: Sequence[str], takes: str, flags: str, long: Mapping[str, str] | None = None
    ) -> Options:
        """Read options as getopt does: ``-p 2``, ``-p2``, flags in one word, ``--name value``, ``--name=value``.

        Parameters
        ----------
        program : str
        words : sequence of str
        takes, flags : str
            Letters with an argument, and without.
        long : mapping, optional
            Long name to letter.

        Raises
        ------
        ScenarioError
            An unknown option, a missing argument, or a word that is no option.
        """
        given: dict[str, str] = {}
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
                negated = name.startswith("no-")
                letter = (long or {}).get(name.removeprefix("no-"))
                if letter is None:
                    raise ScenarioError(f"{program}: no option {word!r}{nearest(name, long or {})}")
                if letter in flags:
                    given[letter] = "0" if negated else "1"
                    continue
                given[letter] = value if equals else _argument(program, word, rest)
                continue
            if not word.startswith("-") or word == "-":
                raise ScenarioError(f"{program}: expected an option, got {word!r}")
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter in flags:
                    given[letter] = "1"
                elif letter in takes:
                    given[letter] = letters or _argument(program, "-" + letter, rest)
                    letters = ""
                else:
                    raise ScenarioError(
                        f"{program}: no option -{letter}; known: {' '.join('-' + x for x in takes + flags)}"
                    )
        return cls(program, given)

    def flag(self, letter: str, default: bool = False) -> bool:
        """Tell whether a flag is set."""
        return self.given.get(letter, "1" if default else "0") != "0"

    def text(self, letter: str, default: str) -> str:
        """Return the argument of an option as it is."""
        return self.given.get(letter, default)

    def whole(self, letter: str, default: int, least: int = 0) -> int:
        """Return the argument of an option as a whole number, at least ``least``.

        Raises
        ------
        ScenarioError
        """
        text = self.given.get(letter, str(default))
        if not re.fullmatch(r"-?\d+", text) or int(text) < least:
            raise ScenarioError(f"{self.program}: -{letter}: expected a whole number >= {least}, got {text!r}")
        return int(text)

    def number(self, letter: str, default: float) -> float:
        """Return the argument of an option as a number >= 0.

        Raises
        ------
        ScenarioError
        """
        text = self.given.get(letter, str(default))
        if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
            raise ScenarioError(f"{self.program}: -{letter}: expected a number >= 0, got {text!r}")
        return float(text)


def _argument(program: str, option: str, rest: list[str]) -> str:
    if not rest:
        raise ScenarioError(f"{program}: {option}: expected an argument, the command ends there")
    return rest.pop(0)


def block_kb(size_mb: float) -> int | None:
    """Return the size of the model's blocks: single pages as in the guests, unless a region is far larger."""
    return 4 if size_mb <= 256 else None

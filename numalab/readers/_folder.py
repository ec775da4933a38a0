"""Files of a run folder: plain, gzipped, or packed together in ``raw.tar.gz``."""

import gzip
import io
import tarfile
import zlib
from pathlib import Path

from numalab.readers._text import ReadError

ARCHIVE = "raw.tar.gz"


class Folder:
    """A run folder.

    Parameters
    ----------
    path : pathlib.Path

    Raises
    ------
    ReadError
        When it is no folder, or its archive is broken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_dir():
            raise ReadError(str(path), 0, "is no folder; expected the folder of one run, with its meta.json")
        self._packed: dict[str, bytes] = {}
        archive = path / ARCHIVE
        if archive.is_file():
            data = _gunzip(archive)
            try:
                with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                    for member in tar.getmembers():
                        stream = tar.extractfile(member)
                        if stream is not None:
                            self._packed[member.name] = stream.read()
            except tarfile.TarError as error:
                raise ReadError(str(archive), 0, f"is no tar archive ({error}); copy the folder again") from error

    def names(self) -> list[str]:
        """List the files, without the ending .gz."""
        plain = {entry.name.removesuffix(".gz") for entry in self.path.iterdir() if entry.name != ARCHIVE}
        return sorted(plain | self._packed.keys())

    def has(self, name: str) -> bool:
        """Tell whether a file is there."""
        return name in self._packed or any((self.path / (name + end)).is_file() for end in ("", ".gz"))

    def source(self, name: str) -> str:
        """Name a file for messages."""
        for end in ("", ".gz"):
            if (self.path / (name + end)).is_file():
                return str(self.path / (name + end))
        return f"{self.path / ARCHIVE}/{name}" if name in self._packed else str(self.path / name)

    def data(self, name: str) -> bytes | None:
        """Read a file, unpacked; None when it is not there.

        Raises
        ------
        ReadError
            When its compression is broken or ends too soon.
        """
        plain, packed = self.path / name, self.path / (name + ".gz")
        if plain.is_file():
            return plain.read_bytes()
        return _gunzip(packed) if packed.is_file() else self._packed.get(name)

    def text(self, name: str) -> str | None:
        """Read a file as text; see `data`."""
        data = self.data(name)
        return None if data is None else data.decode("utf-8", errors="replace")


def _gunzip(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ReadError(str(path), 0, f"cannot be unpacked ({error}); copy the file again") from error

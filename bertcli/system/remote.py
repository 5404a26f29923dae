"""Files elsewhere (s3://, gs://, hf://, https://): found by name, and read in parts, through fsspec."""

import hashlib
import io
import logging
import re
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from bertcli.system.errors import UserError
from bertcli.system.terminal import working
from bertcli.system.urls import Unreachable, check_url, is_remote, told

_VERSIONS = ("ETag", "etag", "blob_id", "Last-Modified", "LastModified", "updated")
"""What the libraries call the version of a file; the first one that a server gives counts."""
_LEAST, _MOST = 1 << 16, 1 << 22
"""The bytes that are asked for at once: few for a look at the start of a file, then more and more."""
PAUSES = (0.5, 2.0, 8.0)
"""Seconds before each new try to read."""
_digests: dict["RemotePath", str] = {}
"""The SHA-256 of files that were read from start to end, so that none is fetched once more to be hashed."""

for _library in ("fsspec", "s3fs", "gcsfs"):
    # Else their warnings come with tracebacks of errors that are told in one line.
    logging.getLogger(_library).addHandler(logging.NullHandler())


class Status(NamedTuple):
    """The size of a file, and in place of the time of its change a number that stands for its version."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class RemotePath:
    """A file elsewhere, in the version in which it was found."""

    url: str
    status: Status

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._path.name

    @property
    def stem(self) -> str:
        """The name without its last suffix."""
        return self._path.stem

    @property
    def suffix(self) -> str:
        """The last suffix of the name."""
        return self._path.suffix

    @property
    def suffixes(self) -> list[str]:
        """All suffixes of the name."""
        return self._path.suffixes

    @property
    def parent(self) -> str:
        """The folder."""
        return self.url.rpartition("/")[0]

    @property
    def _path(self) -> PurePosixPath:
        return PurePosixPath(self.url)

    def stat(self) -> Status:
        """Size and version, without asking for them again."""
        return self.status

    def resolve(self) -> "RemotePath":
        """The same: the name is complete."""
        return self

    def current(self) -> "RemotePath":
        """The same file in the version that is there now. Raises `Unreachable`."""
        with told(self.url):
            system, path = _open_system(self.url)
            system.invalidate_cache()
            return _remote_path(self.url, system.info(path))

    def open(self) -> io.BufferedReader:
        """The bytes; see `_Reader` for the errors of reading."""
        return io.BufferedReader(_Reader(self), _MOST)

    def sha256(self) -> str:
        """The hash of the content, hexadecimal."""
        if self not in _digests:
            with self.open() as file:
                while file.read(_MOST):
                    pass
        return _digests[self]


InputPath = Path | RemotePath
"""A file that a user names, here or elsewhere."""


def current(path: InputPath) -> InputPath:
    """The same file in the version that is there now. Raises `Unreachable`."""
    return path.current() if isinstance(path, RemotePath) else path


def openable(path: InputPath) -> Path | io.BufferedReader:
    """What is given to a library that opens files itself."""
    return path.open() if isinstance(path, RemotePath) else path


def find(name: str) -> list[RemotePath]:
    """The files that the name of a file, a folder or a pattern means, sorted as local ones are.

    Hidden files and folders are skipped. Raises `Unreachable` if there is none, and the errors of
    `check_url`.
    """
    check_url(name)
    is_pattern = re.search(r"[*?[]", name) is not None
    if not has_list(name) and (is_pattern or name.endswith("/")):
        raise UserError(f"{name}: a web server has no list of its files; name each file by its own URL")
    try:
        files = _find(name)
    except Unreachable as error:
        if not error.may_recover:
            raise
        raise Unreachable(f"{error}; check the URL and the network, and run the command again") from None
    if not files:
        raise Unreachable(f"{name}: no file {'matches this pattern' if is_pattern else 'is in this folder'}")
    return files


def _find(name: str) -> list[RemotePath]:
    with told(name), working(lambda: f"{name}: waiting for the server; Ctrl-C stops"):
        system, path = _open_system(name)
        system.invalidate_cache()
        path = path.removesuffix("/**")
        if re.search(r"[*?[]", path):
            matches = system.glob(path, detail=True)
            matches = {key: matches[key] for key in matches if _is_shown(key, path)}
        else:
            matches = {path: system.info(path)}
        found: dict[str, Any] = {}
        for key in sorted(matches):
            if matches[key]["type"] == "file":
                found[key] = matches[key]
                continue
            below = system.find(key, detail=True)
            found |= {each: below[each] for each in sorted(below, key=_parts) if _is_shown(each, key)}
        return [_remote_path(system.unstrip_protocol(key), info) for key, info in found.items()]


def find_file(name: str) -> RemotePath:
    """The file of that name. Raises the errors of `find`, and `UserError` for a folder or a pattern."""
    files = find(name)
    if files[0].url != name:
        raise UserError(f"{name}: is no single file; name the file in it")
    return files[0]


def find_like(path: RemotePath, suffix: str) -> list[RemotePath]:
    """The files of that suffix in the folder of a file; none if there is no list of them."""
    if not has_list(path.url):
        return []
    try:
        found = find(f"{path.parent}/*{suffix}")
    except UserError:
        return []
    return [each for each in found if each.parent == path.parent]


def given_path(name: str) -> InputPath:
    """The file, here or elsewhere, that a user names. Raises the errors of `find_file`."""
    return find_file(name) if is_remote(name) else Path(name)


def has_list(url: str) -> bool:
    """True if the files in a folder can be listed there."""
    return not url.startswith("http")


def _parts(key: str) -> list[str]:
    return key.split("/")


def _is_shown(key: str, top: str) -> bool:
    """True if no part of the path is hidden, apart from those that the user named."""
    named = _parts(top)
    own = [part for part, given in zip(_parts(key), named, strict=False) if part != given]
    return not any(part.startswith(".") for part in [*own, *_parts(key)[len(named) :]])


def _remote_path(url: str, info: dict[str, Any]) -> RemotePath:
    if info.get("mimetype") == "text/html" and not re.search(r"\.html?(\.gz|\.zst)?$", url):
        raise Unreachable(
            f"{url}: the server sends a web page, not a file; give the URL of the file itself (on GitHub "
            "that of the button Raw), or download it first"
        )
    if info.get("size") is None:
        raise Unreachable(f"{url}: the server does not say how long the file is; download it first")
    version = next((str(info[key]) for key in _VERSIONS if info.get(key)), "")
    number = int.from_bytes(hashlib.blake2b(version.encode(), digest_size=7).digest())
    return RemotePath(url, Status(int(info["size"]), number))


def _open_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there."""
    from fsspec.core import url_to_fs

    is_web = url.startswith("http")
    # A server that compresses what it sends would give other bytes than its file has.
    options = {"headers": {"Accept-Encoding": "identity"}, "client_kwargs": {"trust_env": True}}
    return url_to_fs(url, **(options if is_web else {}))


class _Reader(io.RawIOBase):
    """The bytes of a file. Where a connection breaks off, they are read on from the same place.

    Raises `Unreachable` if that fails, and `UserError` for a file that has changed since it was found.
    """

    def __init__(self, path: RemotePath) -> None:
        self._path, self._file = path, None
        self._at, self._step, self._is_at_end = 0, _LEAST, False
        self._hash, self._hashed = hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._path.status.st_size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        size = self._path.status.st_size
        wanted = min(len(buffer), self._step, size - self._at)
        if wanted <= 0:
            if not self._is_at_end:
                self._check_version()
                self._is_at_end = True
            if self._hashed == size:
                _digests[self._path] = self._hash.hexdigest()
            return 0
        data = self._read(wanted)
        if self._hashed == self._at:
            self._hash.update(data)
            self._hashed += len(data)
        buffer[: len(data)] = data
        self._at, self._step = self._at + len(data), min(2 * self._step, _MOST)
        return len(data)

    def _read(self, wanted: int) -> bytes:
        """The next bytes: one or more, and at most `wanted`."""
        url, problem = self._path.url, None
        for pause in (0.0, *PAUSES):
            time.sleep(pause)
            try:
                if problem is not None:
                    self._check_version()
                with told(url):
                    if self._file is None:
                        system, path = _open_system(url)
                        size = self._path.status.st_size
                        self._file = system.open(path, block_size=_MOST, cache_type="none", size=size)
                    self._file.seek(self._at)
                    if data := self._file.read(wanted):
                        return data
                    raise ConnectionError("nothing more came")
            except Unreachable as error:
                problem, self._file = error, None
                if not problem.may_recover:
                    raise
        raise Unreachable(
            f"{problem}; the connection broke off at byte {self._at:,} of {self._path.status.st_size:,}, and "
            f"{len(PAUSES)} new tries failed. Run the command again: it goes on with what is done"
        )

    def _check_version(self) -> None:
        if self._path.current() != self._path:
            raise UserError(f"{self._path}: the file changed while it was read; run the command again")

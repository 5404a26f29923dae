"""URLs where a file or a folder is named: which ones are read, and which are refused."""

import os
import re

from bertcli.system.errors import UserError
from bertcli.system.unreachable import credentials_of

_SCHEME = re.compile(r"(s3|gs|hf|https?)://")
_ANY_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ELSEWHERE = re.compile(r"(s3|gs|hf|https?|ftp|file):/+", re.IGNORECASE)
"""The start of a URL, of which `Path` has perhaps taken a slash."""
_HUB = re.compile(r"hf:/|https?:/+([^/]*@)?(huggingface\.co|hf\.co)\b")
_PLACE = re.compile(r"\w+://[^/?#@:]+(:\d+)?([/?#]|$)")
"""A scheme and a host or bucket, without a user or a password."""


def is_remote(name: str) -> bool:
    """True if the name begins with one of the schemes."""
    return _SCHEME.match(name) is not None


def check_url(name: str) -> str:
    """The same name of a file, a folder or a pattern, here or elsewhere.

    Raises `UserError` for a URL that cannot be read, or that may hold credentials: names are shown and
    stored, and credentials must not be.
    """
    found = _ANY_SCHEME.match(name)
    if found is None or (not is_remote(name) and os.path.exists(name)):
        return name
    scheme, rest = found[1], name[found.end() :]
    if not is_remote(name):
        raise UserError(
            f"{_without_secrets(scheme, rest)}: URLs of this kind are not read; those of s3://, gs://, "
            "hf://, http:// and https:// are. Name a file on this machine by its path"
        )
    if not rest or rest.startswith("/"):
        raise UserError(f"{name}: the server or bucket is missing; expected {scheme}://PLACE/FILE")
    if not _PLACE.match(name):
        raise UserError(
            f"{scheme}://...{rest.rpartition('@')[2] if '@' in rest else ''}: a name cannot hold a user or a "
            "password, because it is stored with the run; put them where they are looked for: "
            f"{credentials_of(name)}"
        )
    start, *query = re.split(r"[?#]", name, maxsplit=1)
    if query and (scheme.startswith("http") or "=" in query[0]):
        raise UserError(
            f"{start}: what follows ? or # may be a secret, and a name is stored with the run; leave it "
            "out, or download the file and name the copy"
        )
    return name


def refuse_elsewhere(path: str) -> str:
    """The same path. Raises `UserError` for a URL, where a folder or file of this machine is needed."""
    if found := _ELSEWHERE.match(path):
        hub = ". A model of the Hugging Face hub has the name org/model" if _HUB.match(path) else ""
        raise UserError(
            f"{_without_secrets(found[1], path[found.end() :])}: a path on this machine was expected; only "
            f"corpora and labeled files may be URLs{hub}"
        )
    return path


def _without_secrets(scheme: str, rest: str) -> str:
    return f"{scheme}://{'...' if set(rest) & set('@?#') else rest}"

"""URLs where a file or a folder is named: which ones are read, and what is said of those that cannot be."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from bertcli.system.errors import UserError

_SCHEME = re.compile(r"(s3|gs|hf|https?)://")
_NEARLY = re.compile(r"(s3|gs|hf|https?):/|.*?://", re.IGNORECASE)
"""The start of a URL of another kind, of a mistyped one, or of one in another (`cache::https://`)."""
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
    found = _SCHEME.match(name) or _NEARLY.match(name)
    if found is None or (not is_remote(name) and os.path.exists(name)):
        return name
    start, rest = found[0], name[found.end() :]
    if not is_remote(name):
        raise UserError(
            f"{_without_secrets(start, rest)}: URLs of this kind are not read; those of s3://, gs://, "
            "hf://, http:// and https:// are. Name a file on this machine by its path"
        )
    scheme = found[1]
    if not rest or rest.startswith("/"):
        raise UserError(
            f"{_without_secrets(start, rest)}: the server or bucket is missing; expected "
            f"{scheme}://PLACE/FILE"
        )
    if not _PLACE.match(name):
        raise UserError(
            f"{scheme}://...{rest.rpartition('@')[2] if '@' in rest else ''}: a name cannot hold a user or a "
            "password, because it is stored with the run; put them where they are looked for: "
            f"{credentials_of(name)}"
        )
    start, *query = re.split(r"[?#]", name, maxsplit=1)
    if query and (scheme.startswith("http") or "=" in query[0].partition("/")[0]):
        raise UserError(
            f"{start}: what follows ? or # may be a secret, and a name is stored with the run; leave it "
            "out, or download the file and name the copy"
        )
    return name


def refuse_elsewhere(path: str) -> str:
    """The same path. Raises `UserError` for a URL, where a folder or file of this machine is needed."""
    if found := _ELSEWHERE.match(path):
        shown = _without_secrets(f"{found[1]}://", path[found.end() :])
        hub = ". A model of the Hugging Face hub has the name org/model" if _HUB.match(path) else ""
        raise UserError(
            f"{shown}: a path on this machine was expected; only corpora and labeled files may be URLs{hub}"
        )
    return path


def _without_secrets(start: str, rest: str) -> str:
    return f"{start}{'...' if set(rest) & set('@?#') else rest}"


_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws; FSSPEC_S3_ANON=true for a public bucket",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login",
    "hf": "HF_TOKEN, or hf auth login",
    "https": "~/.netrc",
}


def credentials_of(url: str) -> str:
    """The places where the library that reads this URL looks for credentials."""
    return _CREDENTIALS["https" if url.startswith("http") else url.partition(":")[0]]


class Unreachable(UserError):
    """A file elsewhere that is missing, may not be read, or cannot be reached.

    `may_recover`: whether a new try may help.
    """

    def __init__(self, message: str, may_recover: bool = False) -> None:
        super().__init__(message)
        self.may_recover = may_recover


@contextmanager
def told(url: str) -> Iterator[None]:
    """Turn every error of the libraries, which have many kinds, into an `Unreachable`."""
    try:
        yield
    except UserError:
        raise
    except ImportError:
        raise Unreachable(
            f"{url}: reading from {url.partition(':')[0]}:// needs more packages: pip install "
            "'bertcli[remote]'"
        ) from None
    except Exception as error:
        raise _explained(url, error) from None


def _explained(url: str, error: Exception) -> Unreachable:
    chain = [error, *filter(None, (error.__cause__, error.__context__))]
    codes = {_status(each) for each in chain}
    no_keys = any(isinstance(each, PermissionError) or "Credentials" in type(each).__name__ for each in chain)
    if no_keys or codes & {401, 403}:
        return Unreachable(
            f"{url}: may not be read with the credentials at hand; looked for: {credentials_of(url)}"
        )
    if isinstance(error, FileNotFoundError) and (codes & {404, 410} or not url.startswith("http")):
        data_set = " (a data set is hf://datasets/USER/NAME)" if re.match("hf://(?!datasets/)", url) else ""
        return Unreachable(
            f"{url}: no such file or folder{data_set}; without credentials a private one is not seen either, "
            f"looked for: {credentials_of(url)}"
        )
    if isinstance(error, ValueError) and "range requests" in str(error):
        return Unreachable(f"{url}: the server gives no parts of a file, only all of it; download it first")
    if answer := next((each for each in HTTPStatus if each >= 400 and each in codes), None):
        reason = f"the server answered {answer} ({answer.phrase})"
    else:
        last = chain[-1]
        # An address may be signed, and aiohttp shows the settings of a connection as an object of Python.
        text = re.sub(r"\?\S*| ssl:(<[^>]*>|\S+)", "", str(last))
        reason = " ".join(text.split()).rstrip(".") or type(last).__name__
    return Unreachable(f"{url}: cannot be read: {reason}", may_recover=True)


def _status(error: BaseException) -> int | None:
    """The status code of HTTP in an error of aiohttp, httpx or gcsfs."""
    response = getattr(error, "response", None)
    for holder, key in ((error, "status"), (response, "status_code"), (error, "code")):
        if hasattr(holder, key):
            return getattr(holder, key)
    return None

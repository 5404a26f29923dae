"""The errors of the libraries that read files elsewhere -> one message that says what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from bertcli.system.errors import UserError

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

"""Texts and labeled files that come with the package, by name; the license of each is beside its files."""

from pathlib import Path

_HERE = Path(__file__).parent

SAMPLES = {"classics": _HERE / "classics" / "classics.txt.gz"}
"""Corpora. A blank line ends a document, which is a chapter of a book."""
LABELED = {
    "sms-spam": _HERE / "sms-spam" / "sms-spam.tsv.gz",
    "wnut17": _HERE / "wnut17" / "train.conll.gz",
    "wnut17-dev": _HERE / "wnut17" / "dev.conll.gz",
    "wnut17-test": _HERE / "wnut17" / "test.conll.gz",
}
"""Labeled files: text messages with the columns `label` (ham, spam) and `message`; posts with named entities
in BIO."""

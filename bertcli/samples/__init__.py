"""Configs, texts and labeled files that come with the package, by name; the license of data is beside it."""

from pathlib import Path

_HERE = Path(__file__).parent

_CONFIGS = _HERE / "configs"
CONFIGS = dict(
    sorted((path.relative_to(_CONFIGS).with_suffix("").as_posix(), path) for path in _CONFIGS.rglob("*.yaml"))
)
"""Configs, such as `quickstart` and `families/electra`; their relative paths begin in the current folder."""
SAMPLES = {"classics": _HERE / "classics" / "classics.txt.gz"}
"""Corpora. A blank line ends a document, which is a chapter of a book."""
SENTENCES = {f"{name}-sentences": _HERE / "sentences" / f"{name}.txt" for name in ("quickstart", "novels")}
"""Sentences with `[MASK]` in them, one a line, for the models of the configs of these names."""
LABELED = {
    "sms-spam": _HERE / "sms-spam" / "sms-spam.tsv.gz",
    "wnut17": _HERE / "wnut17" / "train.conll.gz",
    "wnut17-dev": _HERE / "wnut17" / "dev.conll.gz",
    "wnut17-test": _HERE / "wnut17" / "test.conll.gz",
}
"""Labeled files: text messages with the columns `label` (ham, spam) and `message`; posts with named entities
in BIO."""

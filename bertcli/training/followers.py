"""Trackers that follow a run, each in a process of its own: it reads the rows that the run writes.

The run writes `metrics.jsonl` as always, so a tracker that is slow, hangs or fails cannot touch it. A resume
cuts `metrics.jsonl` back to its checkpoint, and a follower begins with all rows there: an entry has each step
once.

    python -m bertcli.training.followers TRACKER FOLDER    # standard input: how the run ended
"""

import importlib.util
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import yaml

from bertcli.config.schema import TrackerName
from bertcli.folders.mark import Note, read_note, remove_matching, write_note
from bertcli.folders.run_layout import RunLayout, read_verdict
from bertcli.system.errors import UserError
from bertcli.system.files import lock_file, plain_text, write_text
from bertcli.system.terminal import Report, discard, say, short, working
from bertcli.training.trackers import TRACKERS, End, Entry, Row, Tracker

GRACE = 120
"""Seconds that a follower has to complete its entry after the end of the run."""
PAUSE = 0.25
"""Seconds between two looks at `metrics.jsonl`."""
_QUIET = {"DO_NOT_TRACK": "true", "MLFLOW_DISABLE_TELEMETRY": "true", "WANDB_ERROR_REPORTING": "false"}
"""Variables that keep libraries from reporting home, unless the user's environment has them."""
_ID, LOCK = "id", ".lock"
"""The names of the id of an entry, and of the lock of its follower."""


def check_trackers(names: Iterable[TrackerName]) -> None:
    """Raise `UserError` if a tracker is not installed. Nothing is imported, which would take seconds."""
    for name in names:
        for module in TRACKERS[name].modules:
            package = module.partition(".")[0]
            if importlib.util.find_spec(package) is None:
                raise UserError(
                    f"logging.trackers: {name} needs {package}, which is not installed: pip install "
                    f"'bertcli[{name}]'; or leave {name} out"
                )


class Followers:
    """The trackers of a run, seen from the run. As a context, it waits for them when the run ends.

    Nothing here raises or waits while the run trains: a tracker that cannot go on is named in one warning.
    """

    def __init__(self, layout: RunLayout):
        self._root = layout.root
        self._processes: dict[TrackerName, subprocess.Popen[bytes]] = {}

    def start(self, names: Iterable[TrackerName]) -> None:
        """Start a process for each tracker; called on the first rank only."""
        for name in dict.fromkeys(names):
            command = [sys.executable, "-P", "-m", __name__, name, str(self._root.resolve())]
            try:
                self._processes[name] = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=_QUIET | os.environ | {"OMP_NUM_THREADS": "1"},
                    start_new_session=True,  # Ctrl-C in the terminal is for the run
                )
            except OSError as error:
                say(_warning(name, str(error)))

    def check(self, report: Report = say) -> None:
        """Report a warning for each tracker that has failed since the last call."""
        for name, process in list(self._processes.items()):
            if process.poll() is not None:
                del self._processes[name]
                report(_warning(name, _last_words(process)))

    def __enter__(self) -> "Followers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *others: object) -> None:
        stopped = kind is not None and issubclass(kind, SystemExit | KeyboardInterrupt)
        self._close("finished" if kind is None else "stopped" if stopped else "failed")

    def _close(self, end: End) -> None:
        """Tell the followers how the run ended, and wait until they have all, for some `GRACE` seconds."""
        self.check()
        try:
            for process in self._processes.values():
                if process.stdin:
                    with suppress(OSError), process.stdin as word:  # it may just have failed
                        word.write(end.encode())
            for name, process in self._processes.items():
                line = f"{name} takes the last rows; Ctrl-C leaves it"
                with working(lambda line=line: line), suppress(subprocess.TimeoutExpired):
                    process.wait(1.1 * GRACE)
                if process.returncode != 0:
                    say(_warning(name, _last_words(process)))
        except KeyboardInterrupt:
            say("the trackers are left behind; --resume completes their entries")
        finally:
            for process in self._processes.values():
                _dismiss(process)
            self._processes = {}


def _warning(name: TrackerName, reason: str) -> str:
    return (
        f"warning: the tracker {name} is off: {reason}. The run does not need it, and --resume completes "
        "the entry"
    )


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """The last line of a follower that has ended, or how it ended."""
    if process.returncode in (None, -signal.SIGALRM):
        return f"it was not done {GRACE} s after the run"
    said = process.stdout.read().decode(errors="replace").strip() if process.stdout else ""
    _dismiss(process)
    return short(said.splitlines()[-1], 300) if said else f"it ended with exit code {process.returncode}"


def _dismiss(process: subprocess.Popen[bytes]) -> None:
    """Kill a follower that still runs, with the processes that it has started, and close its pipes."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):
            pipe.close()


class _Rows:
    """The rows of a file that grows."""

    def __init__(self, path: Path):
        self._path, self._at = path, 0

    def new(self) -> list[Row]:
        """The complete rows that were written since the last call."""
        lines: list[bytes] = []
        with suppress(FileNotFoundError), open(self._path, "rb") as file:  # none before the first row
            file.seek(self._at)
            *lines, _ = file.read().split(b"\n")
        self._at += sum(len(line) + 1 for line in lines)
        return [json.loads(line) for line in lines]


class _Ending:
    """The end of the run, as this process hears of it; from then on it has `GRACE` seconds."""

    def __init__(self) -> None:
        self.word: End | None = None
        self._heard = threading.Event()
        self._parent = os.getppid()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self) -> End | None:
        """The word of the run; None: it still runs, as known after `PAUSE` seconds."""
        return self.word if self._heard.wait(PAUSE) else None

    def _listen(self) -> None:
        # Loader processes of a killed run hold the other end of the pipe for a while.
        while not select.select([0], [], [], PAUSE)[0] and os.getppid() == self._parent:
            pass
        said = os.read(0, 100).decode() if select.select([0], [], [], 0)[0] else ""
        self.word = cast(End, said or "stopped")
        signal.alarm(GRACE)  # ends this process, even where a library hangs
        self._heard.set()


def _entry(folder: Path, layout: RunLayout, tracker: type[Tracker]) -> Entry:
    """The entry of the run in `folder`, with the id that it had before; its files are noted as bertcli's.

    Raises `UserError` if the folder holds something that bertcli did not write.
    """
    note, path = read_note(folder, "tracker"), folder / _ID
    others = [each.name for each in folder.iterdir() if each.name != LOCK]
    if note is None and others:
        raise UserError(f"{folder} holds {others[0]}, which bertcli did not write; move it elsewhere")
    id = plain_text(path) if path.is_file() else secrets.token_hex(4)
    write_note(folder, Note("tracker", {name: [] for name in (*tracker.files(id), _ID, LOCK)}))
    if tracker.starts_anew:
        remove_matching(folder, tracker.files(id))
    if not path.exists():
        write_text(path, id)
    text, root = plain_text(layout.config), layout.root
    name = f"{root.parent.name}-{root.name}" if layout.is_part else root.name
    config = dict(_flat(yaml.safe_load(text)))
    began = path.stat().st_mtime
    return Entry(folder=folder, id=id, name=name, config=config, config_text=text, began=began)


def _flat(config: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of a config with their sections, such as `training.steps`, and their values."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def follow(name: TrackerName, layout: RunLayout, ending: Any) -> None:
    """Take the rows of a run into a tracker, until the run ends. `ending`: as `_Ending`."""
    folder, tracker = layout.trackers / name, TRACKERS[name]()
    folder.mkdir(parents=True, exist_ok=True)
    busy = f"{folder} is in use by"  # the follower of a killed run completes its entry
    with lock_file(folder / LOCK, busy, "wait for its end", patience=2 * GRACE):
        tracker.open(_entry(folder, layout, type(tracker)))
        rows, end = _Rows(layout.metrics), None
        while end is None:
            end = ending.wait()
            if new := rows.new():
                tracker.log(new)
        is_done, card = end == "finished", layout.model / "README.md"
        verdict = read_verdict(layout.verdict) if is_done else None
        tracker.close(
            end,
            verdict.lines if verdict else [],
            card=plain_text(card) if is_done and card.is_file() else None,
        )


def main(arguments: Sequence[str]) -> int:
    """Follow a run. What libraries print is dropped; an error is one line on standard output, exit code 1."""
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    discard(1)
    discard(2)
    try:
        follow(cast(TrackerName, arguments[0]), RunLayout(Path(arguments[1])), _Ending())
    except BaseException as error:  # also panics, and the exits of libraries
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        print(kind + str(error).strip().partition("\n")[0], file=said, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # what libraries do at an exit could wait for a network

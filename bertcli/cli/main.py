"""The command line: a command -> its module, imported only when called; a user's error -> exit code 2."""

import difflib
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from bertcli.cli import options
from bertcli.system import terminal
from bertcli.system.errors import UserError
from bertcli.system.exhausted import describe_exhausted, describe_os_error
from bertcli.system.signals import is_unsaid_ctrl_c

GROUPS = {
    "Start": {
        "init": "configs",
        "check-data": "data",
        "estimate": "configs",
        "config": "configs",
        "clean": "stores",
        "prepare": "stores",
        "tokenizer": "tokenizer",
    },
    "Train": {
        "pretrain": "train",
        "finetune": "train",
        "tune": "train",
        "extend-vocab": "folders",
        "transplant": "folders",
    },
    "Use": {
        "predict-mask": "masks",
        "predict-next": "masks",
        "predict": "predict",
        "suggest": "predict",
        "embed": "vectors",
        "similarity": "vectors",
        "serve": "predict",
        "convert": "folders",
        "export": "folders",
    },
    "Look": {"report": "pages", "attention": "pages", "show-batch": "data"},
    "Prove": {"evaluate": "evaluate", "verify-resume": "train", "bench": "bench"},
}
"""Heading of `--help` -> command -> its module in `bertcli/cli/`. The module has a function or a Typer app of
that name."""
COMMANDS = {name: module for commands in GROUPS.values() for name, module in commands.items()}
"""Command -> its module, in the order of `--help`."""
WITHOUT_CONFIG = ("predict", "suggest", "embed", "similarity", "evaluate")
"""Commands that read files by options, not by a config."""

PROGRAM = "bertcli"
"""The program's name in messages and shell completion; `python -m` would give it another name."""
CTRL_C = 130
"""The exit code that shells give a program that Ctrl-C ended."""
CLOSED_PIPE = 141
"""The exit code that shells give a program whose reader closed the pipe, as in `bertcli ... | head -1`."""
STDOUT = "standard output"
_KEY = re.compile(r"\b(?:task|corpus)\.[a-z_]+")
_reserve = bytearray(4 << 20)
"""Memory that is freed when memory is exhausted, so that this can be reported."""


class LazyGroup(TyperGroup):
    """The commands, each imported when it is called or listed; the modules import torch only when they
    run."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in the order of `--help`."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in their groups, each with the first sentence of its help."""
        width = max(map(len, COMMANDS))
        for heading, names in GROUPS.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            options.write_commands(heading, commands, formatter, width=width)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of `TyperGroup`; the error for an unknown command names the nearest one."""
        if args[0] not in COMMANDS and not ctx.resilient_parsing:  # a shell that completes wants no error
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(
                f"no command {args[0]!r}; " + (f"did you mean {near[0]}?" if near else "see bertcli --help")
            )
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, whose module is imported now; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"bertcli.cli.{COMMANDS[cmd_name]}")
        app = getattr(module, cmd_name.replace("-", "_"))
        if not isinstance(app, typer.Typer):
            function, app = app, typer.Typer(add_completion=False, rich_markup_mode=None)
            app.command(cls=options.Command)(function)
        command = typer.main.get_command(app)
        command.name = cmd_name
        if cmd_name in WITHOUT_CONFIG:
            command.callback = _told_in_options(command)
        return command


def _told_in_options(command: Any) -> Callable[..., None]:
    """The function of a command, with options in its messages in place of a config's keys.

    The message also names the keys for which the command has no option.
    """
    run, name = command.callback, command.name
    options = {each.name.rstrip("_"): each.opts[0] for each in command.params if each.opts[0][:2] == "--"}
    if "corpus" in options:
        options["files"] = options["corpus"]

    def told(**values: Any) -> None:
        with terminal.told_in_options(options):
            try:
                run(**values)
            except UserError as error:
                text = terminal.in_options(str(error))
                if missing := ", ".join(dict.fromkeys(_KEY.findall(text))):
                    text += f"\nbertcli {name} has no option for {missing}: change the file instead"
                raise UserError(text) from None

    return told


app = typer.Typer(
    cls=LazyGroup,
    context_settings={"help_option_names": ["--help", "-h"]},  # the commands' contexts inherit it
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(version("bertcli"))
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Train your own encoder from raw text, and predict with it.

    \b
    bertcli pretrain quickstart
    bertcli predict-mask runs/quickstart "The [MASK] was dark."
    """


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    code = None
    try:
        _open_closed_streams()
        _name_stdout()
        terminal.guard_streams()
        with terminal.told_while_silent() if os.environ.get("RANK", "0") == "0" else nullcontext():
            _call()
    except (SystemExit, KeyboardInterrupt) as end:
        code = end.code if isinstance(end, SystemExit) else CTRL_C
        if is_unsaid_ctrl_c(end):
            terminal.say("stopped")
    # The frames of the command are gone here, and with them loaders and their processes. After a Ctrl-C the
    # next one shall not meet Python's teardown.
    if _is_one_of_several() or code == CTRL_C:
        _leave_at_once(code)
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open streams that the caller closed (`>&-`) as null devices; otherwise a file would get their
    number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


class _Stdout(io.FileIO):
    """Standard output whose errors name it, which distinguishes them from errors of other files."""

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STDOUT
            raise


def _name_stdout() -> None:
    """Let errors of standard output name it, and escape what it cannot encode, such as bytes of a file's
    name."""
    old = sys.stdout
    if isinstance(old, io.TextIOWrapper) and old is sys.__stdout__:
        raw: Any = _Stdout(old.fileno(), "wb", closefd=False)
        sys.stdout = io.TextIOWrapper(
            raw if old.write_through else io.BufferedWriter(raw),  # PYTHONUNBUFFERED: each write at once
            old.encoding,
            "backslashreplace" if old.errors == "strict" else old.errors,
            line_buffering=old.line_buffering,
            write_through=old.write_through,
        )


def _is_one_of_several() -> bool:
    """True if torchrun started this process with others; `ranks` refuses a size that is not a number."""
    size = os.environ.get("WORLD_SIZE", "")
    return size.isdecimal() and int(size) > 1


def _call() -> None:
    try:
        try:
            app(prog_name=PROGRAM)
        except UserError as error:
            _fail(str(error))
        finally:
            sys.stdout.flush()  # here, where its errors are still reported
    except KeyboardInterrupt:
        raise
    except (SystemExit, BrokenPipeError) as end:
        # Typer answers a reader that has closed its pipe with exit code 1; shells know 128 + SIGPIPE.
        if not isinstance(end.__context__ if isinstance(end, SystemExit) else end, BrokenPipeError):
            raise
        _drop_stdout()
        sys.exit(CLOSED_PIPE)
    except BaseException as error:  # panics of libraries in Rust are no `Exception`
        # torch's handler raises when a loader dies, and would also do so in the lines below.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _fail(_describe(error))


def _describe(error: BaseException) -> str:
    """The message for an error that is no `UserError`; the error is raised again if it is a bug."""
    if isinstance(error, OSError) and error.filename == STDOUT:
        _drop_stdout()
        reason = (error.strerror or "it is closed").lower()
        return f"{STDOUT} could not be written: {reason}; free some space or write elsewhere"
    _reserve.clear()
    exhausted = describe_exhausted(error)
    if exhausted is not None:
        print(f"error: {exhausted}", file=sys.stderr, flush=True)
        _leave_at_once(2)  # Python's teardown would need more of what is exhausted
    message = describe_os_error(error)
    if message is None:
        raise error
    return message


def _fail(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def _drop_stdout() -> None:
    """Redirect standard output to the null device, so that what Python still buffers does not fail again at
    the end."""
    terminal.discard(sys.stdout.fileno())


def _leave_at_once(code: Any) -> NoReturn:
    """End this process without Python's teardown; all output has been written.

    A thread of gloo in a rank may release its last tensor during the teardown. It then asks for the
    interpreter's lock, and Python ends the thread, and with it the process: SIGABRT after a successful run.
    """
    os._exit(code or 0)

"""`bertcli estimate CONFIG`: time, memory and disk of a run, before it begins."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from bertcli.commands.options import AnyConfig, Json, Set
from bertcli.terminal import say


def estimate(
    config: AnyConfig,
    set_: Set = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A GPU of another machine (h200, a100-80gb, ...): calculate only."),
    ] = None,
    json_: Json = False,
) -> None:
    """Estimate time, memory and disk of a run, after a probe of some seconds on this machine.

    The probe takes steps of the run itself, and writes nothing. With --device everything is calculated from
    the data sheet of the device.

    Example: bertcli estimate configs/quickstart.yaml
    """
    from bertcli.config.either import load_either_config
    from bertcli.measure.estimate import estimate as run

    measured = run(load_either_config(config, set_), device)
    if json_:
        print(json.dumps(measured))
    else:
        print(_table(measured))
    for warning in measured["warnings"]:
        say(f"warning: {warning}")


def _table(m: dict[str, Any]) -> str:
    hours = m["hours"]
    time = f"{hours:,.1f} hours" if hours >= 1 else f"{60 * hours:,.1f} minutes"
    kind = "calculated, not measured" if m["calculated"] else "measured"
    rows = {
        "run": f"{m['kind']}, {m['steps']:,} steps, {m['tokens']:,} tokens",
        "on": f"{m['device']}, {m['precision']}, {m['micro_batch_size']} rows at once",
        "parameters": _parts(m["parameters"], ""),
        "operations": f"{m['flops_per_token'] / 1e6:,.1f} million a token, forward and backward",
        "memory": _parts(m["memory_mb"], " MB"),
        "disk": _parts(m["disk_mb"], " MB"),
        "speed": f"{m['tokens_per_s']:,.0f} tokens/s ({kind})",
        "time": f"{time}, evaluations included",
    }
    lines = [f"{name:<12}{value}" for name, value in rows.items()]
    return "\n".join([*lines, *(f"{'given':<12}{line}" for line in m["given"])])


def _parts(parts: dict[str, float], unit: str) -> str:
    """The total, then its parts."""
    shown = [f"{name} {value:,.0f}" for name, value in parts.items() if name != "total"]
    return f"{parts['total']:,.0f}{unit}: {', '.join(shown)}"

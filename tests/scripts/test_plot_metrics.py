from __future__ import annotations

import json
from pathlib import Path

from scripts.plot_metrics import plot


def test_curves_are_drawn(tmp_path: Path) -> None:
    rows = [
        {"step": step, "split": split, "loss": 7.0, "mlm_loss": 6.3, "nsp_loss": 0.7, "tokens": 1000 * step}
        for step in range(1, 40)
        for split in ("train", "heldout")
    ]
    rows.append(
        {"step": 40, "split": "train", "loss": None, "mlm_loss": None, "nsp_loss": None, "tokens": 40}
    )
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plot(tmp_path, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")

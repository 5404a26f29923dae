"""Whatever stands under names that bertcli uses, and is not bertcli's, stays: random trees and commands."""

from __future__ import annotations

from pathlib import Path

from tests.foreign import Base, check_tree


def test_random_trees_keep_every_foreign_byte(tmp_path: Path) -> None:
    base = Base(tmp_path / "base")
    for seed in range(30):
        outcome = check_tree(base, seed, in_processes=False)
        assert outcome.lost == [], f"tree {seed}: {outcome.commands}"

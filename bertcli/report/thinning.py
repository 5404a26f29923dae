"""Many points -> few that draw the same line: the highest and the lowest of each stretch stay."""

from __future__ import annotations

from collections.abc import Sequence


def thin(values: Sequence[float], most: int) -> list[int]:
    """The places of at most `most` of `values`, ascending; the first, the last and every extreme are kept.

    `most`: 4 or more.
    """
    count = len(values)
    if count <= most:
        return list(range(count))
    stretches = (most - 2) // 2
    kept = {0, count - 1}
    for stretch in range(stretches):
        start, stop = (1 + (count - 2) * edge // stretches for edge in (stretch, stretch + 1))
        places = range(start, stop)
        kept |= {min(places, key=values.__getitem__), max(places, key=values.__getitem__)}
    return sorted(kept)


def spread(count: int, most: int) -> list[int]:
    """At most `most` places among `count`, evenly spread, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})

"""The six published sizes of BERT (Devlin et al. 2019; Turc et al. 2019): name -> layers and hidden size."""

HEAD_SIZE = 64
"""Features of one attention head, in every published size."""

PRESETS: dict[str, tuple[int, int]] = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
"""Name -> (layers, hidden). The other sizes follow: heads = hidden / 64, feed-forward = 4 x hidden
(modernbert 1.5 x)."""

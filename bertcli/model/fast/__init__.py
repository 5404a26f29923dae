"""The fast path of the model: each file replaces functions of `bertcli.model` and computes the same.

| file              | replaces                                                                  |
|-------------------|---------------------------------------------------------------------------|
| attention.py      | `layer.attend`; `rotary.attend_window`, for rows of several windows       |
| disentangled.py   | `disentangled.attend` on a CPU                                            |
| dropout.py        | `layer.Dropout.forward` on a CPU                                          |
| packing.py        | `encoder.lay_out`: hidden states of only the real tokens                  |
| layer.py          | `layer.EncoderLayer.forward`, on packed rows                              |

The import of this package makes the replacements. `seam.plain_path` turns all of them off, or some by name.
"""

from bertcli.model.fast import attention, disentangled, dropout, layer, packing

__all__ = ["attention", "disentangled", "dropout", "layer", "packing"]

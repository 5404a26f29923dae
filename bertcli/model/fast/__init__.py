"""The same model, faster: each file replaces one named function of `bertcli.model`, and computes the same.

| file              | replaces                                                        |
|-------------------|-----------------------------------------------------------------|
| attention.py      | `attention.attend`                                              |
| disentangled.py   | `disentangled.attend` on a CPU                                  |
| dropout.py        | `nn.Dropout.forward`                                            |
| encoder.py        | `Encoder.forward` and `EncoderLayer.forward`, on packed rows    |
| packing.py        | the layout that encoder.py computes on                          |
| window.py         | `rotary.attend_window`, for rows of several windows             |

`switch.plain_path` turns all of them off, or some by name.
"""

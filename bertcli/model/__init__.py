"""BERT (Devlin et al. 2019), tensors only.

Names of parameters, results and reshaped locals carry their axes:

    B batch          T tokens          D hidden         N heads        H head size
    F feed-forward   V vocabulary      M masked positions of the whole batch
    R real tokens of the whole batch, one after the other
    K those of them whose last hidden states are wanted

`ids_BT` is [batch, tokens]; `masked_M` holds flat positions b * T + t.
"""

"""An encoder as BERT's (Devlin et al. 2019), tensors only. To be read in this order:

`architecture`, `embeddings`, `attention`, `feed_forward`, `encoder`, `heads`, `pretraining`,
`task_models`, `init`. That is the plain path. `fast/` computes the same in less time.

Names of parameters, results and reshaped locals carry their axes:

    B batch          T tokens          D hidden         N heads        H head size
    F feed-forward   V vocabulary      M masked positions of the batch
    R packed tokens of the batch, one after the other (`fast.packing`)
    K those whose last hidden states are selected        W the most of them in one row

`ids_BT` is [batch, tokens]; `masked_M` holds flat positions b * T + t.
"""

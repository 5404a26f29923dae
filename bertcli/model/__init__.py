"""The encoders of BERT (Devlin et al. 2019) and its family, as tensor code only.

Read the files in this order: `architecture`, `layer`, `encoder`, `heads`, `pretraining`, `task_models`,
`init`; then the variants of the family, `rotary` and `disentangled`. These files are the plain path. `fast/`
computes the same in less time; `seam` defines which functions it may replace.

Names of tensors end with their axes:

    B batch          T tokens          D hidden         N heads        H head size
    F feed-forward   V vocabulary      M masked positions of the batch
    R packed tokens of the batch, one after the other (`fast.packing`)
    K tokens whose last hidden states are selected        W the largest number of them in a row
    E distances between two tokens    P rows of the table of relative positions

`ids_BT` is [batch, tokens]; `masked_M` holds flat positions b * T + t.
"""

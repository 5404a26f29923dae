"""RoBERTa (Liu et al. 2019): BERT's layers under other names, and other models with its layout.

Positions begin after the index of padding. There is one segment, and no next-sentence head. A task reads
`<s>` through a dense layer of its own.
"""

from dataclasses import replace

from bertcli.families.bert import BERT
from bertcli.families.family import Family, Fresh, Head, Keys, bert_layers, class_names, task_heads


def _first_position(config: Keys) -> Keys:
    pad_id = config.get("pad_token_id", 1)
    if type(pad_id) is not int or pad_id < 0:
        raise ValueError(f"pad_token_id: {pad_id!r} is not a token id; positions begin after it")
    return {"position_offset": pad_id + 1}


ROBERTA = Family(
    model_type="roberta",
    name="RoBERTa",
    sizes=BERT.sizes,
    rates=BERT.rates,
    derive=_first_position,
    keys=lambda architecture: {"pad_token_id": architecture.position_offset - 1},
    fixed=BERT.fixed,
    written=BERT.written,
    row_keys=(("bos_token_id",), ("eos_token_id",)),
    tensors={
        **bert_layers("roberta."),
        "pooler.dense": "roberta.pooler.dense",
        "mlm_head": "lm_head",
        "mlm_head.dense": "lm_head.dense",
        "mlm_head.norm": "lm_head.layer_norm",
    },
    prefix="roberta.",
    tied_decoder="lm_head.decoder.weight",
    old_spellings=((r"^lm_head\.decoder\.bias$", "lm_head.bias"),),
    heads=task_heads(
        sequences=Head("classifier.out_proj", dense="classifier.dense", dense_dropout="head_dropout"),
        choices=Head("classifier", dense="roberta.pooler.dense", dropout="dropout"),
    ),
    classes=class_names("Roberta"),
)
XLM_ROBERTA = replace(
    ROBERTA, model_type="xlm-roberta", name="XLM-RoBERTa", classes=class_names("XLMRoberta")
)
CAMEMBERT = replace(ROBERTA, model_type="camembert", name="CamemBERT", classes=class_names("Camembert"))
NEW_ROBERTA = Fresh(
    ROBERTA,
    tokenizer="byte-bpe",
    lowercase=False,
    keys=lambda hidden, max_positions: {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
)

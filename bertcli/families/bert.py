"""BERT (Devlin et al. 2019): its model folders, as transformers and Google write them."""

from __future__ import annotations

from bertcli.families.family import Family

BERT = Family(
    model_type="bert",
    name="BERT",
    sizes={
        "vocab_size": ("vocab_size", None),
        "hidden": ("hidden_size", None),
        "layers": ("num_hidden_layers", None),
        "heads": ("num_attention_heads", None),
        "feed_forward": ("intermediate_size", None),
        "max_positions": ("max_position_embeddings", None),
        "num_segments": ("type_vocab_size", 2),  # this and the rates: Google's release
    },
    rates={
        "dropout": ("hidden_dropout_prob", 0.1),
        "attention_dropout": ("attention_probs_dropout_prob", 0.1),
        "classifier_dropout": ("classifier_dropout", None),
        "layer_norm_eps": ("layer_norm_eps", 1e-12),
        "init_std": ("initializer_range", 0.02),
    },
    fixed={  # None: as if absent
        "hidden_act": ("gelu",),
        "position_embedding_type": ("absolute", None),
        "is_decoder": (False, None),
        "add_cross_attention": (False, None),
        "is_encoder_decoder": (False, None),
    },
    written={"hidden_act": "gelu", "tie_word_embeddings": True},
    tensors={
        "body.embeddings.word": "bert.embeddings.word_embeddings",
        "body.embeddings.position": "bert.embeddings.position_embeddings",
        "body.embeddings.segment": "bert.embeddings.token_type_embeddings",
        "body.embeddings.norm": "bert.embeddings.LayerNorm",
        "body.encoder.layers.{}.attention.query": "bert.encoder.layer.{}.attention.self.query",
        "body.encoder.layers.{}.attention.key": "bert.encoder.layer.{}.attention.self.key",
        "body.encoder.layers.{}.attention.value": "bert.encoder.layer.{}.attention.self.value",
        "body.encoder.layers.{}.attention.output": "bert.encoder.layer.{}.attention.output.dense",
        "body.encoder.layers.{}.attention_norm": "bert.encoder.layer.{}.attention.output.LayerNorm",
        "body.encoder.layers.{}.feed_forward.expand": "bert.encoder.layer.{}.intermediate.dense",
        "body.encoder.layers.{}.feed_forward.contract": "bert.encoder.layer.{}.output.dense",
        "body.encoder.layers.{}.feed_forward_norm": "bert.encoder.layer.{}.output.LayerNorm",
        "pooler.dense": "bert.pooler.dense",
        "mlm_head": "cls.predictions",
        "mlm_head.dense": "cls.predictions.transform.dense",
        "mlm_head.norm": "cls.predictions.transform.LayerNorm",
        "pair_head.dense": "cls.seq_relationship",
        "classifier": "classifier",
        "qa_outputs": "qa_outputs",
    },
    prefix="bert.",
    tied_decoder="cls.predictions.decoder.weight",
    old_spellings=(
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
        (r"^(embeddings|encoder|pooler)\.", r"bert.\1."),
        (r"^cls\.predictions\.decoder\.bias$", "cls.predictions.bias"),
    ),
    buffers=r"bert\.embeddings\.(position_ids|token_type_ids)",  # 0, 1, 2 ... and zeros, in old folders
    other_heads=(
        r"(classifier|qa_outputs|cls\.seq_relationship|bert\.pooler)\..+"
        r"|cls\.predictions\.(bias|transform\.(dense|LayerNorm)\.(weight|bias))"
    ),
    heads={
        "pooler": "pooler",
        "mlm_head": "masked-language-model head",
        "pair_head": "next-sentence head",
        "classifier": "task head",
        "qa_outputs": "task head",
    },
    classes={
        "pretraining": "BertForPreTraining",
        "masked-lm": "BertForMaskedLM",
        "pairs": "BertForNextSentencePrediction",
        "encoder": "BertModel",
        "classification": "BertForSequenceClassification",
        "regression": "BertForSequenceClassification",
        "token-classification": "BertForTokenClassification",
        "question-answering": "BertForQuestionAnswering",
        "multiple-choice": "BertForMultipleChoice",
    },
    tensorflow=(
        (r"/", "."),
        (r"\blayer_(\d+)\b", r"layer.\1"),
        (r"_embeddings$", r"\g<0>.weight"),
        (r"\.(kernel|gamma|output_weights)$", ".weight"),
        (r"\.(beta|output_bias)$", ".bias"),
    ),
)

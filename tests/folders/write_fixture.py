"""Write the checkpoint beside this file, by TensorFlow itself (made with tensorflow-cpu 2.21.0).

    python -m tests.folders.write_fixture

Needs TensorFlow, torch and this project's dependencies; the tests need the files alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import tensorflow.compat.v1 as tf  # pyright: ignore[reportMissingImports]

from tests.folders.folders import ODD, WORDS
from tests.folders.tf_values import tf_shapes, tf_value

HERE = Path(__file__).parent / "tf_checkpoint"


def main() -> None:
    with tf.Graph().as_default():
        for name, shape in tf_shapes().items():
            tf.get_variable(name, initializer=tf_value(name, shape))
        tf.get_variable("global_step", initializer=tf.constant(20, tf.int64))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, str(HERE / "bert_model.ckpt"), write_meta_graph=False)
    (HERE / "checkpoint").unlink()
    config = {
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": ODD.hidden,
        "initializer_range": 0.02,
        "intermediate_size": ODD.feed_forward,
        "max_position_embeddings": ODD.max_positions,
        "num_attention_heads": ODD.heads,
        "num_hidden_layers": ODD.layers,
        "type_vocab_size": 2,
        "vocab_size": ODD.vocab_size,
    }
    (HERE / "bert_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (HERE / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))


if __name__ == "__main__":
    main()

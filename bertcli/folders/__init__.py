"""Folders of models and runs: Hugging Face, sentence-transformers, ONNX; which files are bertcli's."""

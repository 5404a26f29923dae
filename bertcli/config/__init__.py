"""A run's configuration: YAML and `--set` in, one frozen, checked `PretrainConfig` out."""

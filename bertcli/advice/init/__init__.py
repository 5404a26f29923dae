"""A user's files and machine -> a config that runs as it is (`bertcli init`)."""

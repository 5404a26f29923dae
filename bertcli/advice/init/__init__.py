"""The command `bertcli init`: a config that fits the user's files and machine and runs as it is."""

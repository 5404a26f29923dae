"""`python -m bertcli`: the same as the console script."""

from bertcli.cli import main

main()

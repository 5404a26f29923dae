#!/usr/bin/env bash
# From nothing to a BERT of your own: install, pretrain on the bundled classics, fill a few masks.
source "$(dirname "$0")/environment.sh"

bertcli pretrain quickstart --overwrite

bertcli predict-mask runs/quickstart --input quickstart-sentences

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records COMMANDS as the runner would run them in a step with `shell: bash`. OPTIONS are those of
# `backtrail record`; crash files go to the folder CRASHES.
set -euo pipefail
script=$(mktemp "${RUNNER_TEMP:-/tmp}/commands.XXXXXX")
printf '%s\n' "$COMMANDS" >"$script"
read -ra words <<<"${OPTIONS//$'\n'/ }"
files=${CRASHES%/}/%e.%p.core
unset COMMANDS OPTIONS CRASHES
exec backtrail record "${words[@]}" -o "$files" -- \
  bash --noprofile --norc -eo pipefail "$script"

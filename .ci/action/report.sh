#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Adds reports of the files in the folder CRASHES to the job's summary, as many as it takes (1 MiB),
# and counts the files.
set -euo pipefail
shopt -s nullglob
files=("${CRASHES%/}"/*.core "${CRASHES%/}"/*.core.tar.zst)
printf 'crashes=%s\n' "${#files[@]}" >>"$GITHUB_OUTPUT"
room=$((1000 * 1024))
report=$(mktemp "${RUNNER_TEMP:-/tmp}/report.XXXXXX")
for file in "${files[@]}"; do
  backtrail report --markdown -o "$report" "$file" ||
    printf 'No report of %s could be made.\n' "${file##*/}" >"$report"
  if (($(wc -c <"$report") > room - 4096)); then
    printf '%s: %s\n' "${file##*/}" "$(backtrail report --signature "$file" || true)" >"$report"
  fi
  size=$(wc -c <"$report")
  ((size < room)) || break
  room=$((room - size - 1))
  { cat "$report" && echo; } >>"$GITHUB_STEP_SUMMARY"
done
rm -f "$report"

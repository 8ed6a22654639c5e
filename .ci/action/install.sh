#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts backtrail on the PATH of the job's later steps, unless it is there. Tells the version, and the
# folder where backtrail keeps translated code.
#   ARCHIVE: a portable archive; otherwise it is downloaded from RELEASES/REF, REF being a release's tag
set -euo pipefail
die() {
  printf 'backtrail: %s\n' "$*" >&2
  exit 1
}
if [[ -n $ARCHIVE ]] || ! command -v backtrail >/dev/null; then
  folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/backtrail.XXXXXX")
  if [[ -z $ARCHIVE ]]; then
    [[ -n $REF ]] ||
      die "this action is used without a version (uses: OWNER/backtrail@TAG), so there is no release" \
        "to download: name a portable archive by the input \`archive\`"
    ARCHIVE=$folder/backtrail-x86_64.tar.gz
    for name in backtrail-x86_64.tar.gz backtrail-x86_64.tar.gz.sha256; do
      curl --fail --silent --show-error --location --retry 3 --output "$folder/$name" \
        "$RELEASES/$REF/$name" ||
        die "cannot download $RELEASES/$REF/$name; is $REF the tag of a release?"
    done
  fi
  if [[ -f $ARCHIVE.sha256 ]]; then
    read -r sum _ <"$ARCHIVE.sha256"
    sha256sum --quiet --check <<<"$sum  $ARCHIVE"
  fi
  tar xzf "$ARCHIVE" --directory "$folder" --strip-components=1 --no-same-owner
  PATH=$folder/bin:$PATH
  printf '%s\n' "$folder/bin" >>"$GITHUB_PATH"
fi
# As the program finds it: a relative XDG_CACHE_HOME does not count.
cache=$HOME/.cache
[[ ${XDG_CACHE_HOME:-} != /* ]] || cache=$XDG_CACHE_HOME
printf '%s\n' "version=$(backtrail --version | cut -d ' ' -f 2)" "cache=$cache/backtrail" >>"$GITHUB_OUTPUT"

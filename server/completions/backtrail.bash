# SPDX-License-Identifier: Apache-2.0
# Completion of backtrail for bash.
# Written by server/completions/generate.py from the program's own help.


_backtrail_values() {
  case $1 in
    serve:--wrapper) printf '%s\n' : ;;
    serve:--source) printf '%s\n' auto perf-pt perf-bts lbr cache step ;;
    serve:--values) printf '%s\n' free most all ;;
    serve:--tail) printf '%s\n' :file ;;
    serve:--tail-spool) printf '%s\n' :folder ;;
    serve:--tail-spool-size) printf '%s\n' : ;;
    serve:--log) printf '%s\n' : ;;
    serve:--log-file) printf '%s\n' :file ;;
    serve:--disable-packet) printf '%s\n' : ;;
    record:--source) printf '%s\n' auto cache step perf-pt perf-bts lbr none ;;
    record:--ring) printf '%s\n' : ;;
    record:-o) printf '%s\n' :file ;;
    record:--output) printf '%s\n' :file ;;
    record:--on) printf '%s\n' signal sanitizer abort exit timeout= always ;;
    record:--max-disk) printf '%s\n' : ;;
    record:--values) printf '%s\n' free most all ;;
    record:--log) printf '%s\n' : ;;
    replay:--files) printf '%s\n' :folder ;;
    replay:--unpack) printf '%s\n' :folder ;;
    report:-o) printf '%s\n' :file ;;
    report:--output) printf '%s\n' :file ;;
    report:--files) printf '%s\n' :folder ;;
    report:--calls) printf '%s\n' : ;;
    report:--branches) printf '%s\n' : ;;
    why:--files) printf '%s\n' :folder ;;
    pack:-o) printf '%s\n' :file ;;
    pack:--output) printf '%s\n' :file ;;
    decode:--ds-format) printf '%s\n' core2 pentium-m netburst netburst64 ;;
    decode:--base) printf '%s\n' : ;;
    tail:--connect) printf '%s\n' :file ;;
    tail:--thread) printf '%s\n' : ;;
    tail:--process) printf '%s\n' : ;;
    tail:--records) printf '%s\n' : ;;
    tail:--format) printf '%s\n' text perf-script raw ;;
  esac
}

_backtrail_options() {
  case $1 in
    '') printf '%s\n' -h --help --version ;;
    serve) printf '%s\n' -h --help --attach --multi --once --wrapper --disable-randomization --no-disable-randomization --startup-with-shell --no-startup-with-shell --source --from-start --values --tail --tail-spool --tail-spool-size --log --log-file --debug --disable-packet ;;
    record) printf '%s\n' -h --help --source --ring -o --output --on --full --dump-undumpable --pack --attachment --all --max-disk --times --no-times --values --stats --log ;;
    replay) printf '%s\n' -h --help --files --unpack ;;
    report) printf '%s\n' -h --help -o --output --files --calls --branches --values --all-threads --folded --html --json --markdown --perfetto --signature --speedscope --summary ;;
    why) printf '%s\n' -h --help --files ;;
    info) printf '%s\n' -h --help ;;
    pack) printf '%s\n' -h --help -o --output ;;
    doctor) printf '%s\n' -h --help ;;
    decode) printf '%s\n' -h --help --ds-format --base --all ;;
    tail) printf '%s\n' -h --help --connect --thread --process --records --format ;;
    warm) printf '%s\n' -h --help ;;
  esac
}

# _backtrail_reply WORDS CURRENT: replies with those of the words that begin like the current one.
_backtrail_reply() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_backtrail_files() {
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
  compopt -o filenames 2>/dev/null
}

_backtrail() {
  local command=${COMP_WORDS[1]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local at values first=0 words=0 skip=0
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _backtrail_reply 'serve record replay report why info pack doctor decode tail warm -h --help --version' "$current"
    return
  fi
  # Counts the words that are neither options nor their values.
  for ((at = 2; at < COMP_CWORD; ++at)); do
    if ((skip)); then
      skip=0
    elif [[ ${COMP_WORDS[at]} == -- ]]; then
      first=$((at + 1))
      break
    elif [[ ${COMP_WORDS[at]} == -?* ]]; then
      [[ -z $(_backtrail_values "$command:${COMP_WORDS[at]}") ]] || skip=1
    else
      words=$((words + 1))
      case $command:$words in
        record:1) first=$at ;;
        serve:2) first=$at ;;
      esac
      ((first)) && break
    fi
  done
  if ((first && first < COMP_CWORD)); then
    # The program's own completion, where bash-completion is loaded.
    if declare -F _comp_command_offset >/dev/null; then
      _comp_command_offset "$first"
    elif declare -F _command_offset >/dev/null; then
      _command_offset "$first"
    else
      _backtrail_files -f "$current"
    fi
    return
  fi
  if ((skip)); then
    values=$(_backtrail_values "$command:$before")
    case $values in
      :file) _backtrail_files -f "$current" ;;
      :folder) _backtrail_files -d "$current" ;;
      :) ;;
      *) _backtrail_reply "$values" "$current" ;;
    esac
  elif [[ $current == -* ]] && ((!first)); then
    _backtrail_reply "$(_backtrail_options "$command")" "$current"
  else
    case $command:$words in
      record:0 | serve:1) _backtrail_files -c "$current" ;;
      replay:[01] | report:0 | info:0 | pack:0 | decode:0) _backtrail_files -f "$current" ;;
    esac
  fi
}
complete -F _backtrail backtrail

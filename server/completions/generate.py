#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the completions for bash, zsh and fish from what `backtrail COMMAND --help` lists.

usage: generate.py BACKTRAIL            writes backtrail.bash, backtrail.zsh, backtrail.fish beside itself
       generate.py --check BACKTRAIL    fails if they differ from what it would write
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The kinds of files that a word names; other words have no completion.
PLACES = {"FILE": "file", "PATH": "file", "ARCHIVE": "file", "FOLDER": "folder"}
# Words that follow the options.
ARGUMENTS = {"serve": "COMM PROGRAM", "record": "PROGRAM", "replay": "FILE", "report": "FILE",
             "info": "FILE", "pack": "FILE", "decode": "FILE"}


class Option:
    """One option of a command: its names, and what its value may be."""

    def __init__(self, names, value, text):
        self.names = names
        self.value = value  # the word of the help; "" without a value
        self.text = text
        self.choices = []
        self.is_list = value == "LIST"

    def text_of(self, name):
        if name.startswith("--no-") and "--" + name[5:] in self.names:
            return "Opposite of --" + name[5:]
        return self.text

    @property
    def place(self):
        return PLACES.get(self.value, "")


def program_output(program, words):
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return done.stdout


def entries(text):
    """(left, right) of each entry of a help: indented by 2 or 4; its text may be on later lines.

    CLI11 from 2.5 on gives short options a column of their own: "  -h,     --help", and long ones
    without a short one 10 blanks.
    """
    found = []
    for line in text.splitlines():
        line = re.sub(r"^ {2}(-\w,) +(?=--)", r"  \1", line)
        head = re.match(r"( {2}| {4}| {10}(?=--))(\S.*)$", line)
        if head:
            left, _, right = head.group(2).partition("  ")
            found.append([left, right.strip()])
        elif re.match(r" {8,}\S", line) and found:
            found[-1][1] = (found[-1][1] + " " + line.strip()).strip()
        elif line and not line.startswith(" "):
            found.append(["", ""])  # a heading: no later line belongs to the entry before
    return [(left, right) for left, right in found if left]


def short(text):
    """The part of a description that fits a menu."""
    return re.split(r"; |: | \(| Needs", text)[0].strip()


def read_option(left, right):
    # In one line if the names are long: "--tail-spool FOLDER Needs: --tail".
    words = re.sub(r"\{false\}", "", left).split()
    names = [name for name in words[0].rstrip(",").split(",") if name.startswith("-")]
    while len(words) > 1 and words[1].startswith("-") and words[0].endswith(","):
        names += words.pop(1).rstrip(",").split(",")
    value = re.split(r"[:\[]", words[1])[0].rstrip(".") if len(words) > 1 else ""
    return Option(names, value, short(right))


def choices(program, command, option):
    """The values that the program itself names when it is given a wrong one."""
    if option.value not in ("KIND", "LIST", "FORM", "DEPTH"):
        return []
    words = [option.names[-1], "@", "@", "@"]
    text = program_output(program, [command, *words])
    required = re.search(r"(--[\w-]+) is required", text)  # CLI11 2.6 looks for these first
    if required:
        text = program_output(program, [command, required.group(1), "@", *words])
    listed = re.search(r"not one of (.*)", text) or re.search(r"not in \{(.*?)\}", text)
    if not listed:
        return []
    return [word.replace("=SECONDS", "=") for word in re.split(r",\s*", listed.group(1).strip())]


def read_commands(program):
    """{command: (description, options)}; "" has the options without a command."""
    text = program_output(program, ["--help"])
    named = [(left, right) for left, right in entries(re.split(r"(?i)\nsubcommands:", text)[1])]
    commands = {"": ("", [read_option(*entry) for entry in entries(text) if entry[0][0] == "-"])}
    for name, what in named:
        if " " in name:
            continue
        found = []
        for left, right in entries(program_output(program, [name, "--help"])):
            if left.startswith("-"):
                option = read_option(left, right)
                option.choices = choices(program, name, option)
                found.append(option)
        commands[name] = (short(what), found)
    return commands


HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# %s
# Written by server/completions/generate.py from the program's own help.
"""


def bash(commands):
    lines = [HEADER % "Completion of backtrail for bash.", r"""
_backtrail_values() {
  case $1 in"""]
    for name, (_, options) in commands.items():
        for option in options:
            if option.choices:
                for spelling in option.names:
                    lines.append("    %s:%s) printf '%%s\\n' %s ;;" % (
                        name, spelling, " ".join(option.choices)))
            elif option.place:
                for spelling in option.names:
                    lines.append("    %s:%s) printf '%%s\\n' :%s ;;" % (name, spelling, option.place))
            elif option.value:
                for spelling in option.names:
                    lines.append("    %s:%s) printf '%%s\\n' : ;;" % (name, spelling))
    lines.append(r"""  esac
}

_backtrail_options() {
  case $1 in""")
    for name, (_, options) in commands.items():
        lines.append("    %s) printf '%%s\\n' %s ;;" % (
            name or "''", " ".join(spelling for option in options for spelling in option.names)))
    lines.append(r"""  esac
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
    _backtrail_reply '%s %s' "$current"
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
complete -F _backtrail backtrail""" % (
        " ".join(name for name in commands if name),
        " ".join(spelling for option in commands[""][1] for spelling in option.names)))
    return "\n".join(lines) + "\n"


def quoted(text):
    return text.replace("\\", "\\\\").replace("'", "'\\''")


def bracketed(text):
    return re.sub(r"([\[\]:])", r"\\\1", quoted(text))


def zsh(commands):
    lines = ["#compdef backtrail", HEADER % "Completion of backtrail for zsh.", """\
_backtrail() {
  local curcontext="$curcontext" state line
  typeset -A opt_args
  _arguments -C \\"""]
    for option in commands[""][1]:
        lines += ["    '%s[%s]' \\" % (name, quoted(option.text)) for name in option.names]
    lines.append("""\
    '1: :->command' \\
    '*:: :->rest'
  case $state in
    command)
      local -a commands
      commands=(""")
    lines += ["        '%s:%s'" % (name, quoted(what)) for name, (what, _) in commands.items() if name]
    lines.append("""\
      )
      _describe -t commands command commands
      ;;
    rest)
      curcontext="${curcontext%:*:*}:backtrail-$words[1]:"
      case $words[1] in""")
    for name, (_, options) in commands.items():
        if not name:
            continue
        lines.append("        %s)" % name)
        lines.append("          _arguments \\")
        for option in options:
            value = ""
            if option.is_list and option.choices:
                value = ":%s:_sequence compadd - %s" % (option.value, " ".join(option.choices))
            elif option.choices:
                value = ":%s:(%s)" % (option.value, " ".join(option.choices))
            elif option.place:
                value = ":%s:_files%s" % (option.value, " -/" if option.place == "folder" else "")
            elif option.value:
                value = ":%s: " % option.value
            lines += ["            '%s[%s]%s' \\" % (spelling, bracketed(option.text_of(spelling)), value)
                      for spelling in option.names]
        ends = {"COMM PROGRAM": ["'1:COMM: '", "'2:program:_command_names -e'", "'*::: :_normal'"],
                "PROGRAM": ["'1:program:_command_names -e'", "'*:: :_normal'"], "FILE": ["'*:file:_files'"]}
        lines += ["            %s \\" % end for end in ends.get(ARGUMENTS.get(name, ""), [])]
        lines[-1] = lines[-1][:-2]
        lines.append("          ;;")
    lines.append("""\
      esac
      ;;
  esac
}

_backtrail "$@\"""")
    return "\n".join(lines) + "\n"


def fish(commands):
    names = [name for name in commands if name]
    lines = [HEADER % "Completion of backtrail for fish.",
             "set -l commands " + " ".join(names), "complete -c backtrail -f"]
    for option in commands[""][1]:
        for spelling, text in fish_entries(option):
            lines.append("complete -c backtrail -n \"not __fish_seen_subcommand_from $commands\" %s -d '%s'"
                         % (spelling, quoted(text)))
    for name in names:
        lines.append("complete -c backtrail -n \"not __fish_seen_subcommand_from $commands\" -a %s -d '%s'"
                     % (name, quoted(commands[name][0])))
    for name in names:
        condition = "-n '__fish_seen_subcommand_from %s'" % name
        for option in commands[name][1]:
            value = ""
            if option.choices:
                value = " -x -a '%s'" % " ".join(option.choices)
            elif option.place == "folder":
                value = " -x -a '(__fish_complete_directories)'"
            elif option.place:
                value = " -r -F"
            elif option.value:
                value = " -x"
            for names, text in fish_entries(option):
                lines.append("complete -c backtrail %s %s%s -d '%s'" % (
                    condition, names, value, quoted(text)))
        if ARGUMENTS.get(name) == "FILE":
            lines.append("complete -c backtrail %s -F" % condition)
        elif name in ARGUMENTS:
            lines.append("complete -c backtrail %s -a '(__fish_complete_subcommand)'" % condition)
    return "\n".join(lines) + "\n"


def fish_entries(option):
    """(names, description): names with the same meaning are one entry."""
    by_text = {}
    for name in option.names:
        by_text.setdefault(option.text_of(name), []).append(
            "-l " + name[2:] if name.startswith("--") else "-s " + name[1:])
    return [(" ".join(names), text) for text, names in by_text.items()]


def main():
    check = sys.argv[1:2] == ["--check"]
    program = sys.argv[-1]
    commands = read_commands(program)
    stale = []
    for name, text in (("bash", bash(commands)), ("zsh", zsh(commands)), ("fish", fish(commands))):
        path = os.path.join(HERE, "backtrail." + name)
        if not check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                stale.append(path)
    if stale:
        sys.exit("the help lists other options than these; run server/completions/generate.py "
                 "PROGRAM: " + " ".join(stale))


if __name__ == "__main__":
    main()

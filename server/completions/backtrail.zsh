#compdef backtrail
# SPDX-License-Identifier: Apache-2.0
# Completion of backtrail for zsh.
# Written by server/completions/generate.py from the program's own help.

_backtrail() {
  local curcontext="$curcontext" state line
  typeset -A opt_args
  _arguments -C \
    '-h[Print this help message and exit]' \
    '--help[Print this help message and exit]' \
    '--version[Display program version information and exit]' \
    '1: :->command' \
    '*:: :->rest'
  case $state in
    command)
      local -a commands
      commands=(
        'serve:Serve a program or a running process to gdb'
        'record:Record a program and its children, without gdb'
        'replay:Serve a crash file to gdb'
        'report:Report the last calls before a crash'
        'why:Tell where a value was last written before a crash, and from what'
        'info:List the contents of a crash file'
        'pack:Pack a crash file, its programs and their sources into one archive'
        'doctor:List and test this machine'\''s branch sources, and explain what others need'
        'decode:Print the branches or packets in a perf.data file, a dump of a debug store, or the output of tail'
        'tail:Print the branches of a server'\''s recorded threads, while gdb uses them'
        'warm:Translate programs and their libraries ahead, so that first runs are fast'
      )
      _describe -t commands command commands
      ;;
    rest)
      curcontext="${curcontext%:*:*}:backtrail-$words[1]:"
      case $words[1] in
        serve)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '--attach[Attach to the running process PID]' \
            '--multi[Wait for gdb to name the program, and keep serving when it ends]' \
            '--once[Serve one connection, then exit]' \
            '--wrapper[Command that starts the program, ended by --]:WORDS: ' \
            '--disable-randomization[Turn off address randomization for the program]' \
            '--no-disable-randomization[Opposite of --disable-randomization]' \
            '--startup-with-shell[Start the program through a shell]' \
            '--no-startup-with-shell[Opposite of --startup-with-shell]' \
            '--source[Branch source]:KIND:(auto perf-pt perf-bts lbr cache step)' \
            '--from-start[Record from the start]' \
            '--values[How much of the program'\''s values to record besides branches, so that the past shows more]:DEPTH:(free most all)' \
            '--tail[Socket file for `backtrail tail`]:PATH:_files' \
            '--tail-spool[Folder that buffers records for a slow `backtrail tail`, so that none is lost]:FOLDER:_files -/' \
            '--tail-spool-size[Most bytes buffered for each tail]:SIZE: ' \
            '--log[Levels, for example rsp\:debug,ptrace\:debug]:SPEC: ' \
            '--log-file[Log to this file, not to stderr]:FILE:_files' \
            '--debug[Log everything]' \
            '--disable-packet[Disable these packets]:LIST: ' \
            '1:COMM: ' \
            '2:program:_command_names -e' \
            '*::: :_normal'
          ;;
        record)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '--source[Branch source]:KIND:(auto cache step perf-pt perf-bts lbr none)' \
            '--ring[Size of each thread'\''s history, in bytes or with k, M, G]:SIZE: ' \
            '-o[Keep a crash file if the program ends badly, or if a child does and the program fails]:FILE:_files' \
            '--output[Keep a crash file if the program ends badly, or if a child does and the program fails]:FILE:_files' \
            '--on[Ends that keep a file]:LIST:_sequence compadd - signal sanitizer abort exit timeout= always' \
            '--full[Include unchanged pages of files in the crash file]' \
            '--dump-undumpable[Keep crash files also of processes that the kernel does not dump]' \
            '--pack[Pack crash files into FILE.tar.zst at once, with the program, its libraries, debug files and sources]' \
            '--attachment[Print \[\[ATTACHMENT|PATH\]\] on a line before that of each crash file, by which JUnit reports attach it]' \
            '--all[Keep every branch in the crash file]' \
            '--max-disk[Most bytes of a crash file on disk, and of --all'\''s records before it]:SIZE: ' \
            '--times[Crash files show when threads were on a CPU, if the kernel allows it]' \
            '--no-times[Opposite of --times]' \
            '--values[How much of the program'\''s values to record besides branches, so that the past shows more]:DEPTH:(free most all)' \
            '--stats[Print on stderr what was recorded and what it cost]' \
            '--log[Levels, for example ptrace\:debug]:SPEC: ' \
            '1:program:_command_names -e' \
            '*:: :_normal'
          ;;
        replay)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '--files[Look for the program'\''s files below this folder first]:FOLDER:_files -/' \
            '--unpack[Unpack an archive into this folder, which stays]:FOLDER:_files -/' \
            '*:file:_files'
          ;;
        report)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '-o[Write to this file, not to standard output]:FILE:_files' \
            '--output[Write to this file, not to standard output]:FILE:_files' \
            '--files[Look for the program'\''s files below this folder first]:FOLDER:_files -/' \
            '--calls[Calls to show of each thread]:N: ' \
            '--branches[Branches to read of each thread, newest first]:N: ' \
            '--values[Show arguments and variables of the thread that died, where they can be known]' \
            '--all-threads[Show each thread in full]' \
            '--folded[Stacks for flame graphs]' \
            '--html[An interactive page for a browser]' \
            '--json[For programs]' \
            '--markdown[For the page of a CI job, at most 512 KiB]' \
            '--perfetto[For Perfetto]' \
            '--signature[One line that is equal for duplicates]' \
            '--speedscope[For speedscope]' \
            '--summary[One screen]' \
            '*:file:_files'
          ;;
        why)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '--files[Look for the program'\''s files below this folder first]:FOLDER:_files -/'
          ;;
        info)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '*:file:_files'
          ;;
        pack)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '-o[The archive]:ARCHIVE:_files' \
            '--output[The archive]:ARCHIVE:_files' \
            '*:file:_files'
          ;;
        doctor)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]'
          ;;
        decode)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '--ds-format[FILE is the memory of a debug store, in this format]:FORM:(core2 pentium-m netburst netburst64)' \
            '--base[Address of FILE'\''s first byte]:ADDRESS: ' \
            '--all[Also print the older records after the write pointer]' \
            '*:file:_files'
          ;;
        tail)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]' \
            '--connect[The socket of serve --tail]:PATH:_files' \
            '--thread[Only this thread]:TID: ' \
            '--process[Only this process, with all its threads]:PID: ' \
            '--records[End after N records]:N: ' \
            '--format[Output for people, for tools, or for `backtrail decode`]:FORM:(text perf-script raw)'
          ;;
        warm)
          _arguments \
            '-h[Print this help message and exit]' \
            '--help[Print this help message and exit]'
          ;;
      esac
      ;;
  esac
}

_backtrail "$@"

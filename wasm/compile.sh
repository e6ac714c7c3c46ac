#!/bin/sh
# compile.sh em++ ARGUMENTS…: CMake's launcher of em++. To compile a file em++ runs clang with some flags of its own, and takes
# a third of a second to think of them (3.1.6). So it is asked once for each set of flags, and what it says (-v) is run for the
# other files; what is no compilation of one file, or not understood, em++ does itself. ccache, where it is, knows clang only.
set -eu
emcc=$1
case " $* " in *' -c '*) ;; *) exec "$@" ;; esac

# What em++ need not know, and what it is asked for.
shift
own='' flags='' source=''
quoted() { printf "'%s' " "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
while [ $# -gt 0 ]; do
  case $1 in
    -c) source=$2; shift ;;
    -o | -MT | -MF | -MQ | -isystem | -include | -x | -Xclang) own="$own$1 $(quoted "$2")"; shift ;;
    -D* | -I* | -MD | -MMD) own="$own$(quoted "$1")" ;;
    *) flags="$flags$(quoted "$1")" ;;
  esac
  shift
done

kept=emcc-flags/$(printf '%s' "$emcc $flags" | cksum | tr ' ' -)
if [ ! -f "$kept" ]; then
  mkdir -p emcc-flags
  probe=$kept.$$.cpp
  : >"$probe"
  eval "\"$emcc\" $flags -v -c \"$probe\" -o \"$probe.o\"" 2>&1 |
    sed -n "s|^ \(\"[^\"]*clang.*\) -v -c $probe -o .*|\1|p" >"$probe.new"
  rm -f "$probe" "$probe.o"
  mv "$probe.new" "$kept"
fi
command=$(cat "$kept")
[ -n "$command" ] || eval "exec \"$emcc\" $flags $own -c \"\$source\""
if command -v ccache >/dev/null 2>&1; then command="ccache $command"; fi
eval "exec $command $own -c \"\$source\""

#!/usr/bin/env bash
# What a person types and Tab makes of it, in real shells on a real terminal (tmux): bash, zsh and fish complete `fluxqueue`
# by its own scripts, zsh and fish complete `kubectl fluxqueue` by kubectl's.
#
#   tests/tools/completion_test.sh BIN
#
# BIN: the folder of the programs. Needs tools/deps.
set -euo pipefail
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../tools" && pwd)
# shellcheck source=../../tools/lib/log.sh
. "$tools/lib/log.sh"
# shellcheck source=../../tools/lib/proc.sh
. "$tools/lib/proc.sh"
# shellcheck source=../../tools/lib/cache.sh
. "$tools/lib/cache.sh"
# shellcheck source=checks.sh
. "$tools/../tests/tools/checks.sh"

bin=${1:?usage: tests/tools/completion_test.sh BIN}
root=$(mktemp -d)
clean_up() {
  tmux -S "$root/tmux" kill-server 2>/dev/null || true
  rm -rf "$root"
}
on_exit clean_up

terminal() { tmux -S "$root/tmux" "$@"; }
screen() { terminal capture-pane -p -t "$shell"; }
line() { screen | sed '/^$/d' | tail -1; }
shows() { if screen | grep -q -- "$1"; then echo yes; else screen; fi; }

# begin NAME COMMAND…: with nothing of the user's, in a folder with one file.
begin() {
  shell=$1
  shift
  terminal new-session -d -s "$shell" -x 150 -y 40 -c "$root/work" \
    env -i HOME="$root" TERM=screen LANG=C.UTF-8 PATH="$bin:$(kubernetes_home "$tools"):/usr/bin:/bin" "$@"
  eventually 20 "$shell has its prompt" '$' line
}
# completes TYPED WANTED: by Tab, and a letter behind it.
completes() {
  terminal send-keys -t "$shell" C-u C-l
  terminal send-keys -t "$shell" -l "$1"
  terminal send-keys -t "$shell" Tab x
  eventually 20 "$shell: '$1' becomes '$2'" "\$ ${2}x" line
}
# offers TYPED PATTERN
offers() {
  terminal send-keys -t "$shell" C-u C-l
  terminal send-keys -t "$shell" -l "$1"
  terminal send-keys -t "$shell" Tab Tab
  eventually 20 "$shell: '$1' offers '$2'" yes shows "$2"
}
completes_fluxqueue() {
  completes 'fluxqueue hol' 'fluxqueue hold '
  completes 'fluxqueue jobs --al' 'fluxqueue jobs --all '
  completes 'fluxqueue jobs -o ya' 'fluxqueue jobs -o yaml '
  completes 'fluxqueue jobs --output=ya' 'fluxqueue jobs --output=yaml '
  completes 'fluxqueue --config the-f' 'fluxqueue --config the-file '
  completes 'fluxqueue hold the-f' 'fluxqueue hold the-f'
}

mkdir -p "$root/work" "$root/.config/fish"
: >"$root/work/the-file"

cat >"$root/.bashrc" <<'END'
PS1='$ '
source <(fluxqueue completion bash)
END
begin bash bash --noprofile
completes_fluxqueue
offers 'fluxqueue job' 'job *jobs'

cat >"$root/.zshrc" <<'END'
PS1='$ '
autoload -Uz compinit && compinit -u
source <(fluxqueue completion zsh)
source <(kubectl completion zsh)
END
begin zsh zsh -d
completes_fluxqueue
completes 'kubectl fluxqueue hol' 'kubectl fluxqueue hold '
offers 'fluxqueue job' 'jobs *-- List jobs'

# As a file that zsh loads at the first Tab.
mkdir "$root/installed"
cat >"$root/installed/.zshrc" <<'END'
PS1='$ '
fpath=("$ZDOTDIR" $fpath)
autoload -Uz compinit && compinit -u
END
"$bin/fluxqueue" completion zsh >"$root/installed/_fluxqueue"
begin zsh-installed ZDOTDIR="$root/installed" zsh -d
completes 'fluxqueue hol' 'fluxqueue hold '
completes 'fluxqueue jobs --al' 'fluxqueue jobs --all '

cat >"$root/.config/fish/config.fish" <<'END'
set -g fish_greeting
set -g fish_autosuggestion_enabled 0
function fish_prompt
    echo -n '$ '
end
fluxqueue completion fish | source
kubectl completion fish | source
END
begin fish fish
completes_fluxqueue
completes 'kubectl fluxqueue hol' 'kubectl fluxqueue hold '
offers 'fluxqueue job' 'jobs *(List jobs'

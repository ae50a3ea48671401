# shellcheck shell=bash
# The folder in which tools/up keeps a running system, and which tools/down stops. Sourced after log.sh.

state_folder() {
  printf '%s' "${FLUXQUEUE_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/fluxqueue}"
}

# The folder, made, with the mark by which tools/down --purge knows that it may delete it.
state_make() {
  local folder
  folder=$(realpath -m "$(state_folder)")
  if [[ -d $folder && ! -e $folder/.fluxqueue && -n $(ls -A "$folder") ]]; then
    die "$folder is not empty and not ours: set FLUXQUEUE_STATE to another folder"
  fi
  mkdir -p "$folder"
  : >"$folder/.fluxqueue"
  printf '%s' "$folder"
}

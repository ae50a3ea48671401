# shellcheck shell=bash
# Packages from PyPI, in the cache. Sourced after log.sh and cache.sh.

# python_home NAME REQUIREMENTS: prints the folder of a Python environment with the packages of the file REQUIREMENTS, and
# makes it if it is not there yet. Its version is that of the first package.
python_home() {
  local home
  home=$(cache_key "python-$1" "$(sed -n 's/^[^#=]*==//p;T;q' "$2")" "$2")
  (cache_lock "python-$1" && python_install "$home" "$2") && printf '%s\n' "$home"
}

python_install() {
  [[ ! -e $1/done ]] || return 0
  rm -rf "$1"
  python3 -m venv "$1" >&2 &&
    "$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$2" >&2 &&
    : >"$1/done"
}

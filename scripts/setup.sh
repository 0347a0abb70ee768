#!/bin/sh
# Make .venv with the pinned packages, and install fio when it is missing and we may.
# A stamp inside .venv holds a digest of what it was made from: while that stands, nothing is installed.
set -eu

cd "$(dirname "$0")/.."
venv=.venv

say() { printf 'setup: %s\n' "$*" >&2; }

# Print the prefix that makes a command run as root, or fail when there is none without a password.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        echo env
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        echo "sudo -n"
    else
        return 1
    fi
}

# Install Debian packages without a question; fail when that is not possible here.
install_packages() {
    command -v apt-get >/dev/null 2>&1 || return 1
    prefix=$(as_root) || return 1
    say "installing $* with apt-get"
    $prefix apt-get update -qq >/dev/null 2>&1 || true
    $prefix env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null 2>&1
}

suits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' 2>/dev/null
}

find_python() {
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 && suits "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

can_make_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

make_venv() {
    # Programs inside name the folder they were made in: a moved or copied one is made again.
    if [ "$(cat "$venv/.made-in" 2>/dev/null)" = "$(pwd)" ] && suits "$venv/bin/python"; then
        return
    fi
    python=$(find_python) || {
        say "no Python from 3.11 to 3.14 was found. Install one, or name it: PYTHON=/path/to/python3 make setup."
        exit 1
    }
    if ! can_make_venv "$python"; then
        install_packages python3-venv || true
        can_make_venv "$python" || {
            say "$python cannot make virtual environments. Install them: apt-get install python3-venv."
            exit 1
        }
    fi
    say "making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
    pwd >"$venv/.made-in"
}

install_pinned() {
    say "installing the pinned packages (torch and DALI: 2 GB to fetch the first time)"
    "$venv/bin/python" -m pip --disable-pip-version-check install --quiet \
        -e '.[train,dali,gpu,test]' -c constraints.txt
}

want=$(cat pyproject.toml constraints.txt | sha256sum | cut -d ' ' -f 1)
if [ "$(cat "$venv/.made-in" 2>/dev/null)" != "$(pwd)" ] ||
    [ "$(cat "$venv/.made-from" 2>/dev/null)" != "$want" ]; then
    make_venv
    install_pinned
    # Last, so that an interrupted installation is not taken for a whole one.
    echo "$want" >"$venv/.made-from"
fi

if ! command -v fio >/dev/null 2>&1 && [ ! -e "$venv/.no-fio" ]; then
    install_packages fio || touch "$venv/.no-fio"
fi
if ! command -v fio >/dev/null 2>&1; then
    say "fio is missing and may not be installed from here, so runs go without the storage ceiling; to have it: apt-get install fio."
fi

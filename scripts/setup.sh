#!/bin/sh
# Make .venv with the pinned packages, and install fio when it is missing and we may.
# A stamp inside .venv holds a digest of what it was made from: while that stands, nothing is installed.
# With the word "test": the Debian packages too that tests need when root runs them.
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
    [ -n "${updated:-}" ] || $prefix apt-get update -qq >/dev/null 2>&1 || true
    updated=yes
    $prefix env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=60 install -y -qq \
        --no-install-recommends "$@" >/dev/null 2>&1
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
        -e '.[train,dali,gpu,export,test]' -c constraints.txt
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

# What tests run as root need, one set a line: a program of it that shows it is there, and packages.
test_sets='
ip iproute2
mkfs.xfs xfsprogs
mkfs.btrfs btrfs-progs
mksquashfs squashfs-tools
bpftrace bpftrace
sshfs sshfs openssh-sftp-server
mfsmount moosefs-master moosefs-chunkserver moosefs-client
glusterd glusterfs-server glusterfs-client
'

# Print the packages of each set whose program is missing.
missing_sets() {
    printf '%s' "$test_sets" | while read -r program packages; do
        [ -z "$program" ] || command -v "$program" >/dev/null 2>&1 || echo "$packages"
    done
}

# Print which services of the servers among them this machine has.
services() {
    for unit in glusterd glustereventsd moosefs-master moosefs-chunkserver; do
        [ ! -e "/lib/systemd/system/$unit.service" ] || echo "$unit"
    done
}

# Run a command that installs. No server that it brings is started, now or with the machine: tests
# start their own.
without_services() {
    policy=/usr/sbin/policy-rc.d
    had=" $(services | tr '\n' ' ')"
    if [ -e "$policy" ]; then
        policy=
    else
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    status=0
    "$@" || status=$?
    for unit in $(services); do
        case "$had" in
            *" $unit "*) ;; # was here before
            *) systemctl disable --quiet "$unit" >/dev/null 2>&1 || true ;;
        esac
    done
    if [ -n "$policy" ]; then
        rm -f "$policy"
        trap - EXIT
    fi
    return "$status"
}

setup_tests() {
    missing=$(missing_sets)
    [ -n "$missing" ] || return 0
    if [ "$(cat "$venv/.tried-for-tests" 2>/dev/null)" != "$missing" ]; then
        # shellcheck disable=SC2086 # words are packages
        without_services install_packages $missing || printf '%s\n' "$missing" |
            while read -r packages; do
                # One that is not to be had must not keep the others away.
                without_services install_packages $packages || true
            done
        missing=$(missing_sets)
        echo "$missing" >"$venv/.tried-for-tests"
    fi
    [ -z "$missing" ] || printf '%s\n' "$missing" | while read -r packages; do
        say "could not be installed: $packages; tests that need it are skipped and say so."
    done
}

# Others than root can mount nothing: their tests are skipped whatever is installed.
if [ "${1:-}" = test ] && [ "$(id -u)" = 0 ]; then
    PATH=$PATH:/usr/sbin:/sbin
    setup_tests
fi

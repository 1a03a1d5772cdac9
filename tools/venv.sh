#!/bin/sh
# Makes .venv, with the Python that PYTHON names (default python3). What is missing is said in one sentence.
set -eu

wanted=${PYTHON:-}
python=${wanted:-python3}
PATH=$PATH:/usr/sbin:/sbin # dpkg needs these, and a short PATH may lack them

fail() {
    echo "make install: $*" >&2
    exit 1
}

modern() { # whether $1 is a Python that Ottla runs on
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
}

fail_for() { # says why $1 will not do: too old, or, as pyenv's stand-in for a version that is not chosen, no Python at all
    is=$(version "$1" 2>&1) || fail "$1 does not run here ($(echo "$is" | head -n 1)); name another Python with PYTHON=…"
    fail "$1 is Python $is, Ottla needs 3.11 or newer; name one with PYTHON=…"
}

may_install() { # as root on Debian and its kin we install what is missing ourselves
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

install_packages() {
    echo "make install: installing $* with apt-get"
    apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null ||
        fail "apt-get could not install $*; install it by hand, then run make again"
}

if modern .venv/bin/python && [ -x .venv/bin/pip ]; then
    if [ -z "$wanted" ] || [ "$(version "$wanted" 2>/dev/null)" = "$(version .venv/bin/python)" ]; then
        exit 0
    fi
fi

if ! command -v "$python" >/dev/null; then
    [ -z "$wanted" ] || fail "there is no $wanted here; name another with PYTHON=…"
    may_install || fail "there is no python3 here; install Python 3.11 or newer, or name it with PYTHON=…"
    install_packages python3 python3-venv
fi

if ! modern "$python"; then
    for other in python3.14 python3.13 python3.12 python3.11; do
        if [ -z "$wanted" ] && modern "$other"; then
            python=$other
            break
        fi
    done
    modern "$python" || fail_for "$python"
fi

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    package=python$(version "$python")-venv
    may_install || fail "$python has no venv module; install the package $package, or name another Python with PYTHON=…"
    install_packages "$package"
fi

"$python" -m venv --clear .venv || fail "$python could not make .venv in $(pwd)"

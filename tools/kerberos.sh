#!/bin/sh
# Makes sure that a KDC can be started here, and that .venv has the package gssapi, which comes as source.
set -eu

PATH=$PATH:/usr/sbin:/sbin # dpkg needs these, a short PATH may lack them, and the KDC is there
PACKAGES="krb5-kdc krb5-admin-server krb5-user libkrb5-dev"

fail() {
    echo "make interop: $*" >&2
    exit 1
}

complete() {
    for program in krb5kdc kdb5_util kadmin.local kinit krb5-config; do
        command -v "$program" >/dev/null || return 1
    done
}

if ! complete; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
        fail "there is no Kerberos here, which some tests start; install $PACKAGES"
    command -v cc >/dev/null || PACKAGES="$PACKAGES gcc libc6-dev"
    echo "make interop: installing $PACKAGES with apt-get"
    apt-get update -qq >/dev/null 2>&1 || true
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $PACKAGES >/dev/null 2>&1 ||
        fail "apt-get could not install $PACKAGES; install them by hand"
fi

.venv/bin/python -c 'import gssapi' 2>/dev/null ||
    .venv/bin/python -m pip --quiet --no-input --disable-pip-version-check install -c constraints.txt gssapi ||
    fail "pip could not build the package gssapi; what it said is above"

#!/bin/sh
# Makes sure that there is a Chromium, in which the console's page is looked at.
set -eu

PATH=$PATH:/usr/sbin:/sbin # dpkg needs these, and a short PATH may lack them

command -v chromium >/dev/null && exit 0
[ -n "${OTTLA_CHROMIUM:-}" ] && exit 0

fail() {
    echo "make interop: there is no chromium here, in which the console's page is looked at; install it, or name one by OTTLA_CHROMIUM" >&2
    exit 1
}

[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail
echo "make interop: installing Chromium with apt-get"
apt-get update -qq >/dev/null 2>&1 || true
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 || fail

#!/bin/sh
# Makes sure that there is a Java that Spark runs on; with the argument "maven", Maven as well.
set -eu

PATH=$PATH:/usr/sbin:/sbin # dpkg needs these, and a short PATH may lack them

fail() {
    echo "make java: $*" >&2
    exit 1
}

java_version() { # the major version of the Java that Spark will find, 0 without one
    java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    command -v "$java" >/dev/null || {
        echo 0
        return
    }
    # version "17.0.15" is 17, version "1.8.0_432" is 8
    "$java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

install_package() { # $1: what it is for a person, $2…: packages, the first that can be had
    what=$1
    shift
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "make java: installing $what with apt-get"
    apt-get update -qq >/dev/null 2>&1 || true
    for package in "$@"; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null 2>&1 && return 0
    done
    return 1
}

found=$(java_version)
if [ "${found:-0}" -lt 17 ]; then
    [ "${found:-0}" = 0 ] && was="there is no Java here" || was="the Java here is version $found"
    install_package "Java 17" openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless || true
    found=$(java_version)
    [ "${found:-0}" -ge 17 ] || fail "$was; Spark needs Java 17 or newer: install a JRE, or set JAVA_HOME to one"
fi

if [ "${1:-}" = maven ] && ! command -v mvn >/dev/null; then
    install_package Maven maven || fail "there is no Maven (mvn) here, which fetches Apache Kafka's jars; install it"
fi

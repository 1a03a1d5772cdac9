#!/bin/sh
# Builds the root file system of the image: build_root.sh FOLDER CONTEXT
# CONTEXT has the files of this folder, constraints.txt and a wheel of Ottla for Python 3.13. Needs root, mmdebstrap and pip.
# PIP names another pip. The Containerfile and `make image` run it.
set -eu

root=$1
context=$2
pip=${PIP:-pip3}
python=3.13
library=$root/usr/local/lib/python$python/dist-packages

fail() {
    echo "build_root.sh: $*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "it needs root: mmdebstrap creates files of other users"
for tool in mmdebstrap strip; do
    command -v $tool >/dev/null || fail "there is no $tool; install the packages mmdebstrap and binutils"
done
set -- "$context"/ottla-*-cp313-cp313-*linux*.whl
[ -e "$1" ] || fail "there is no wheel for Python $python in $context; make wheels builds it"
wheel=$1

# 1. Debian's essential packages and Python, without documentation and translations.
mmdebstrap --quiet --mode=root --variant=essential \
    --include=python$python-minimal,libpython$python-stdlib,ca-certificates,hostname \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    trixie "$root" http://deb.debian.org/debian

# 2. Ottla with what its broker, metrics, console and registry need, from wheels for the Python of the image.
machine=$(uname -m)
$pip install --quiet --disable-pip-version-check --root-user-action ignore --no-compile --only-binary :all: \
    --python-version $python --implementation cp --abi cp313 --abi abi3 --abi none \
    --platform "linux_$machine" --platform "manylinux_2_28_$machine" --platform "manylinux2014_$machine" \
    --platform "manylinux_2_17_$machine" --platform any \
    --constraint "$context/constraints.txt" --target "$library" "$wheel[metrics,registry,console,security]"
rm -rf "$library/bin"

# 3. The commands of the image, and the places of scripts that were written for Kafka's images.
mkdir -p "$root/opt/ottla/bin"
cp "$context/start.py" "$root/opt/ottla/bin/start"
cp "$context/health.py" "$root/opt/ottla/bin/health"
cat >"$root/opt/ottla/bin/ottla" <<'PYTHON'
#!/usr/bin/python3.13 -B
import sys

from ottla.__main__ import main

sys.exit(main())
PYTHON
sed -i '1s,.*,#!/usr/bin/python3.13 -B,' "$root/opt/ottla/bin/start" "$root/opt/ottla/bin/health"
printf '#!/bin/sh\nexec /opt/ottla/bin/ottla storage "$@"\n' >"$root/opt/ottla/bin/kafka-storage"
for family in kafka confluent; do
    folder=$root/etc/$family/docker
    mkdir -p "$folder"
    printf '# Sourced by scripts; sets nothing.\n' >"$folder/bash-config"
    for step in run configure launch; do
        printf '#!/bin/sh\n%s/opt/ottla/bin/start %s\n' "$([ $step = configure ] || echo 'exec ')" $step >"$folder/$step"
    done
    printf '#!/bin/sh\n' >"$folder/ensure"
    chmod 755 "$folder"/*
done
chmod 755 "$root"/opt/ottla/bin/*

# 4. The user, and the folders that it writes.
echo 'ottla:x:1000:1000:Ottla:/var/lib/ottla:/bin/sh' >>"$root/etc/passwd"
echo 'ottla:x:1000:' >>"$root/etc/group"
for folder in var/lib/ottla var/lib/kafka/data etc/kafka/secrets mnt/shared/config; do
    mkdir -p "$root/$folder"
done
chown -R 1000:1000 "$root/var/lib/ottla" "$root/var/lib/kafka" "$root/etc/kafka" "$root/etc/confluent" "$root/mnt/shared"

# 5. Byte code for a quick start; what runs only at a build is removed.
for module in pydoc_data unittest idlelib lib2to3 ensurepip turtledemo tkinter test sqlite3; do
    rm -rf "$root/usr/lib/python$python/$module"
done
# Debian's essential packages have more than a container needs: Perl, character sets of other systems, package data.
rm -rf "$root"/usr/bin/perl* "$root"/usr/lib/*/perl-base "$root"/usr/lib/*/gconv "$root"/usr/lib/*/libdb-5* "$root"/usr/lib/udev \
    "$root"/usr/share/perl* "$root"/usr/share/zoneinfo "$root"/usr/share/bash-completion "$root"/usr/share/doc "$root"/usr/share/man
# Nor does it need tools for logins, disks, packages and SELinux, with the libraries that only they use.
find "$root"/usr/sbin -mindepth 1 ! -name update-ca-certificates -delete
for tool in 'dpkg*' localedef 'ls[bcfilmn]*' who users pinky logger wall agetty login su mount umount chage passwd gpasswd newgrp \
    chfn chsh expiry faillog lastlog dir vdir chcon runcon nsenter setpriv; do
    find "$root"/usr/bin -name "$tool" -delete
done
rm -rf "$root"/usr/lib/*/security "$root"/usr/lib/*/libsystemd.so* "$root"/usr/lib/*/libmvec.so* "$root"/usr/lib/python$python/lib-dynload/*_test*
# rich needs Pygments for source code and markdown-it for Markdown only, cryptography needs cffi's compiled module only.
rm -rf "$library"/pygments* "$library"/markdown_it* "$library"/mdurl* "$library"/cffi "$library"/pycparser*
rm -rf "$root"/usr/lib/*/libsqlite3* "$root"/var/lib/dpkg/info
find "$library" -name '*.so' -exec strip --strip-unneeded {} +
find "$library" \( -name '*.c' -o -name '*.pyx' -o -name '*.pyi' -o -name tests \) -prune -exec rm -rf {} +
find "$root" -xdev -name __pycache__ -prune -exec rm -rf {} +
chroot "$root" /usr/bin/python$python -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python$python /usr/local/lib/python$python >/dev/null || true
rm -rf "$root"/var/lib/apt/* "$root"/var/cache/* "$root"/var/log/* "$root"/tmp/* "$root"/etc/machine-id
if [ "${SOURCE_DATE_EPOCH:-}" ]; then
    find "$root" -xdev -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
fi

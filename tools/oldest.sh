#!/bin/sh
# Prints the oldest Python here that Ottla runs on, on PATH or of pyenv; nothing where there is none with a version in its name.
for name in python3.11 python3.12 python3.13 python3.14; do
    for place in "$name" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/"$name"; do
        if "$place" -c 'import venv, ensurepip' 2>/dev/null; then
            echo "$place"
            exit 0
        fi
    done
done

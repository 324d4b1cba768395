#!/bin/sh
# Says what is missing before a static build is tried. Argument: the host triple.
set -eu
host=$1
case $host in
*-linux-musl) exit 0 ;;
*-linux-gnu) ;;
*) echo "make build makes a static executable on Linux; on $host use: cargo build --release -p quarrydb-http" >&2; exit 1 ;;
esac
cc=${CC:-cc}
command -v "$cc" >/dev/null || { echo "no C compiler: apt-get install gcc libc6-dev" >&2; exit 1; }
archive=$("$cc" -print-file-name=libc.a)
[ -f "$archive" ] || {
    echo "the static C library (libc.a) is missing: apt-get install libc6-dev   (Fedora: dnf install glibc-static)" >&2
    exit 1
}

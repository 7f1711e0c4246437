#!/bin/sh
# Makes configure and Makefile.in from configure.ac and Makefile.am. Only needed in a git checkout.
set -eu
cd "$(dirname "$0")"
missing=
for pair in autoconf:autoconf automake:automake libtoolize:libtool m4:m4; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
    echo "autogen.sh: missing:$missing; on Debian: apt-get install$missing" >&2
    exit 1
fi
mkdir -p m4 build-aux
exec autoreconf --install --force "$@"

#!/bin/sh
# Holds an executable to being static. Argument: its path.
set -eu
file=$1
[ -x "$file" ] || { echo "$file was not built" >&2; exit 1; }
if command -v ldd >/dev/null; then
    said=$(ldd "$file" 2>&1 || true)
    case $said in
    *"not a dynamic executable"* | *"statically linked"* | *"Not a valid dynamic program"*) ;;
    *) echo "$file is not static:" >&2; echo "$said" >&2; exit 1 ;;
    esac
fi
size=$(wc -c <"$file")
limit=$((25 * 1024 * 1024))
[ "$size" -le "$limit" ] || echo "warning: $size bytes, more than the $limit that we promise" >&2
echo "static, $size bytes: $file"

#!/usr/bin/env bash
# Makes the root folder of an image (scripts/Dockerfile): the program, the shared libraries that it names, the certificates
# of this machine, the configs as /etc/nigh, and a user without rights.
#
#     scripts/image-root.sh PROGRAM FOLDER
set -euo pipefail
[ $# = 2 ] || { echo "usage: scripts/image-root.sh PROGRAM FOLDER" >&2; exit 2; }
program=$(realpath "$1") folder=$(realpath -m "$2")
cd "$(dirname "$0")/.."
[ ! -e "$folder" ] || { echo "$folder is there already: name a folder that is not" >&2; exit 1; }
certificates=/etc/ssl/certs/ca-certificates.crt
[ -e "$certificates" ] || { echo "$certificates is missing: install ca-certificates" >&2; exit 1; }
# Of a program that cannot run here, and without ldd, the libraries are not known: the image would lack them.
"$program" --version >/dev/null || { echo "$program does not run on this machine: build it for this one" >&2; exit 1; }
command -v ldd >/dev/null || { echo "ldd is missing: install the tools of the C library (libc-bin)" >&2; exit 1; }

mkdir -p "$folder"/{usr/bin,etc/ssl/certs,etc/nigh,data,proc,dev}
install -d -m 1777 "$folder/tmp"
install -m 755 "$program" "$folder/usr/bin/nigh"
# The paths of libraries are those of this machine. A static program has none.
libraries=$(ldd "$program" 2>/dev/null | grep -o '/[^ ]*' || true)
for library in $libraries; do
    install -D -m 755 "$library" "$folder$library"
done
install -m 644 "$certificates" "$folder$certificates"
install -m 644 configs/*.toml "$folder/etc/nigh/"
echo 'nigh:x:10001:10001::/data:/usr/bin/nigh' > "$folder/etc/passwd"
echo 'nigh:x:10001:' > "$folder/etc/group"
# Names of hosts: from /etc/hosts first, which a container has for itself.
echo 'hosts: files dns' > "$folder/etc/nsswitch.conf"
chown 10001:10001 "$folder/data" 2>/dev/null || echo "only root can give $folder/data to user 10001: the image needs a volume there" >&2

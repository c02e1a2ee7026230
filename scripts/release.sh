#!/usr/bin/env bash
# Makes the files of a release in the folder `dist`, for x86-64 and ARM of 64 bits:
#
#     nigh-VERSION-TARGET.tar.gz     the program, its manual, completions and licences: what `cargo binstall` fetches
#     nigh-VERSION-TARGET.cdx.json   the packages in it (scripts/sbom.py)
#     nigh-VERSION-...-manylinux...  a wheel with the same program and the Python module
#     SHA256SUMS                     of all of these
#
#     scripts/release.sh [x86_64] [aarch64]  for these processors, or for both
#     scripts/release.sh --list              says what can be built here, and why the rest is not, and builds nothing
#     scripts/release.sh --program PROGRAM [FOLDER]
#                                            packs a program of this machine that is there, without wheels
#
# Programs are static (musl) where Rust's target for that is there or rustup can add it; their wheels are for glibc and musl. Otherwise both
# need glibc 2.28 or later, of 2018. One build makes both. C is compiled and all is linked by zig, which knows every target; pip fetches
# it and maturin.
set -euo pipefail
# What the user names is in the folder of the user.
if [ "${1:-}" = --program ] && [ $# -gt 1 ]; then
    named=("$(realpath -m "$2")")
    [ $# -lt 3 ] || named+=("$(realpath -m "$3")")
    set -- --program "${named[@]}" "${@:4}"
fi
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
glibc=2.28
out=dist
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

usage() { echo "usage: scripts/release.sh [--list | --program PROGRAM [FOLDER] | [x86_64] [aarch64]]" >&2; exit 2; }
# Whether the standard library of a target is there, or can be had.
has_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1" ] ||
        { [ "${mode:-}" != list ] && command -v rustup >/dev/null && rustup target add "$1" >/dev/null 2>&1; }
}
# The target of the archive for a kind of processor.
target_of() {
    local triple
    for triple in "$1-unknown-linux-musl" "$1-unknown-linux-gnu"; do
        if has_target "$triple"; then echo "$triple"; return; fi
    done
}

# pack TARGET PROGRAM: the archive and the list of packages.
pack() {
    local target=$1 program=$2 name=nigh-$version-$1 folder
    folder=$scratch/$name
    mkdir -p "$folder"
    install -m 755 "$program" "$folder/nigh"
    cp LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$folder/"
    # A program of another processor cannot write its manual: that of this machine has, before it.
    if "$program" --version >/dev/null 2>&1; then
        [ "$("$program" --version)" = "nigh $version" ] || { echo "$program is not nigh $version" >&2; exit 1; }
        mkdir -p "$scratch/pages"
        "$program" man --out "$scratch/pages/man" >/dev/null
        for shell in bash zsh fish; do "$program" completions $shell > "$scratch/pages/nigh.$shell"; done
    fi
    [ -d "$scratch/pages" ] || { echo "no program that runs here was built before $target: its archive has no manual" >&2; exit 1; }
    cp -r "$scratch/pages/." "$folder/"
    tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u+w,go-w,a+rX -C "$scratch" -cf - "$name" |
        gzip -9n > "$out/$name.tar.gz"
    scripts/sbom.py "$target" > "$out/$name.cdx.json"
    echo "$out/$name.tar.gz: $(du -h "$out/$name.tar.gz" | cut -f1)"
}

sums() {
    rm -f "$out/SHA256SUMS"
    compgen -G "$out/*" >/dev/null || { echo "nothing was made: see above what is missing" >&2; exit 1; }
    (cd "$out" && find . -type f -printf '%f\0' | sort -z | xargs -0 sha256sum -- > "$scratch/SHA256SUMS")
    mv "$scratch/SHA256SUMS" "$out/SHA256SUMS"
}

# Files of the same commit have the same times.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH=$epoch
processors=(x86_64 aarch64)
case ${1:-} in
--list)
    [ $# = 1 ] || usage
    mode=list
    for processor in "${processors[@]}"; do
        target=$(target_of "$processor")
        case $target in
        *-musl) echo "nigh-$version-$target.tar.gz: a static program; and a wheel for glibc and musl" ;;
        *-gnu) echo "nigh-$version-$target.tar.gz and a wheel, for glibc $glibc or later: the target $processor-unknown-linux-musl is not installed" ;;
        *) echo "nothing for $processor: none of Rust's targets for it is installed" ;;
        esac
    done
    exit 0
    ;;
--program)
    [ $# = 2 ] || [ $# = 3 ] || usage
    out=${3:-$out}
    mkdir -p "$out"
    pack "$(rustc --print host-tuple)" "$2"
    sums
    exit 0
    ;;
esac
[ $# = 0 ] || processors=("$@")
for processor in "${processors[@]}"; do
    case $processor in x86_64 | aarch64) ;; *) usage ;; esac
done
# It writes the manual of all: a program of another processor cannot.
own=$(uname -m)
case " ${processors[*]} " in
*" $own "*) ;;
*) echo "$own must be among the processors: its program writes the manual" >&2; exit 2 ;;
esac
others=()
for processor in "${processors[@]}"; do [ "$processor" = "$own" ] || others+=("$processor"); done
processors=("$own" "${others[@]}")

rm -rf "$out"
mkdir -p "$out"
python3 -m venv "$scratch/tools"
"$scratch/tools/bin/python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2' ziglang
export PATH=$scratch/tools/bin:$PATH
for processor in "${processors[@]}"; do
    target=$(target_of "$processor")
    [ -n "$target" ] || { echo "nothing for $processor: rustup cannot add its targets"; continue; }
    case $target in *-musl) kinds=(manylinux_2_17 musllinux_1_2) ;; *) kinds=("manylinux_${glibc/./_}") ;; esac
    # The program is in the wheel, and lies beside what cargo built.
    maturin build --release --locked --zig --target "$target" --compatibility "${kinds[@]}" --out "$out"
    pack "$target" "${CARGO_TARGET_DIR:-target}/$target/release/nigh"
done
sums
echo "made in $out:"
cat "$out/SHA256SUMS"

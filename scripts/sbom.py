#!/usr/bin/env python3
"""Lists the packages that are compiled into the program, as CycloneDX 1.6 (an SBOM), on standard output.

    scripts/sbom.py TARGET [--features LIST] [--no-default-features]

TARGET is one of Rust's, such as x86_64-unknown-linux-musl. The packages, their licences and which
needs which are those that `cargo tree` names, without those that only builds and tests need; the
digests are those of Cargo.lock. C that comes with a package (`-sys`, mimalloc, ring) is a part of it.
The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Between the columns of `cargo tree`: no name, licence or address has it.
COLUMN = "\t"


def tree(target: str, flags: list[str]) -> list[tuple[int, str, str, str, str]]:
    """The lines of `cargo tree`: depth, name, version, licence, repository."""
    command = ["cargo", "tree", "--locked", "--package", "nigh", "--target", target, "--edges", "normal,no-proc-macro"]
    command += ["--prefix", "depth", "--charset", "ascii", "--format", COLUMN + COLUMN.join(["{p}", "{l}", "{r}"]), *flags]
    text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = []
    for line in filter(None, text.splitlines()):
        depth, package, licence, repository = line.split(COLUMN)
        name, version = package.split(" ")[:2]
        # A package whose needs stand above is marked by `(*)`.
        lines.append((int(depth), name, version.removeprefix("v"), licence, repository.removesuffix("(*)").strip()))
    return lines


def component(name: str, version: str, licence: str, repository: str, digest: str | None) -> dict:
    """One package."""
    purl = f"pkg:cargo/{name}@{version}"
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if licence := licence.removesuffix("(*)").strip():
        # Older packages write MIT/Apache-2.0.
        found["licenses"] = [{"expression": " OR ".join(part.strip() for part in licence.split("/"))}]
    if digest:
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if repository:
        found["externalReferences"] = [{"type": "vcs", "url": repository}]
    return found


def bill(target: str, flags: list[str]) -> dict:
    """The whole document."""
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    digests = {(package["name"], package["version"]): package.get("checksum") for package in locked}
    components: dict[str, dict] = {}
    needs: dict[str, set[str]] = {}
    above: list[str] = []
    for depth, name, version, licence, repository in tree(target, flags):
        found = component(name, version, licence, repository, digests.get((name, version)))
        purl = found["purl"]
        components.setdefault(purl, found)
        needs.setdefault(purl, set())
        del above[depth:]
        if above:
            needs[above[-1]].add(purl)
        above.append(purl)
    root, *rest = components.values()
    root["type"] = "application"
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": root, "properties": [{"name": "target", "value": target}]},
        "components": sorted(rest, key=lambda package: package["purl"]),
        "dependencies": [{"ref": purl, "dependsOn": sorted(needs[purl])} for purl in sorted(needs)],
    }
    # Of the content, so that it is the same for the same sources.
    name = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{name}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--features")
    parser.add_argument("--no-default-features", action="store_true")
    arguments = parser.parse_args()
    flags = [f"--features={arguments.features}"] if arguments.features else []
    flags += ["--no-default-features"] if arguments.no_default_features else []
    json.dump(bill(arguments.target, flags), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

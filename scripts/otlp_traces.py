#!/usr/bin/env python3
"""The stages of a run as an OpenTelemetry trace: a span for the run, and one for each stage of each process.

    nigh run JOB.toml --week today --json 2>events.jsonl >result.json
    scripts/otlp_traces.py <events.jsonl

Reads the events that `nigh --json` writes to stderr. The spans go to a collector by OTLP over HTTP, as JSON: to
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or to `v1/traces` below OTEL_EXPORTER_OTLP_ENDPOINT (http://localhost:4318 if neither is set), with the
headers of OTEL_EXPORTER_OTLP_HEADERS. The service is called OTEL_SERVICE_NAME, or nigh. Runs with the same --run-id are one trace. A stage is a
span from its begin to its end by the clock; `cpu_s` is an attribute.

Exit codes: 0 the collector has the spans, 1 it does not, 2 no event of a run came.
"""

import datetime, hashlib, json, os, sys, urllib.error, urllib.parse, urllib.request


def value(of):
    if isinstance(of, float):
        return {"doubleValue": of}
    return {"intValue": str(of)} if isinstance(of, int) else {"stringValue": str(of)}


def attributes(**of):
    return [{"key": key, "value": value(of[key])} for key in of]


def identifier(length, *of):
    return hashlib.sha256("\0".join(map(str, of)).encode()).hexdigest()[: 2 * length]


def spans_of(event):
    """The spans of the event that a process writes at the end of its stages."""
    run, process, epoch, job = (event[name] for name in ("run", "process", "epoch", "job"))
    end = datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00"))
    end = round(end.timestamp() * 1_000_000) * 1000
    begin = end - sum(round(stage["wall_s"] * 1e9) for stage in event["stages"])
    trace, parent = identifier(16, run), identifier(8, run, job, process, epoch)
    common = {"traceId": trace, "kind": 1}
    about = attributes(run=run, job=job, process=process, generation=epoch)
    yield {**common, "spanId": parent, "name": job, "startTimeUnixNano": str(begin), "endTimeUnixNano": str(end), "attributes": about}
    at = begin
    for number, stage in enumerate(event["stages"]):
        until = at + round(stage["wall_s"] * 1e9)
        yield {
            **common,
            "spanId": identifier(8, parent, number),
            "parentSpanId": parent,
            "name": stage["stage"],
            "startTimeUnixNano": str(at),
            "endTimeUnixNano": str(until),
            "attributes": attributes(process=process, cpu_s=float(stage["cpu_s"])),
        }
        at = until


def endpoint():
    own = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return own or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318").rstrip("/") + "/v1/traces"


def headers():
    pairs = (pair.partition("=") for pair in os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",") if pair.strip())
    return {name.strip(): urllib.parse.unquote(of.strip()) for name, _, of in pairs}


def main():
    spans = []
    for line in sys.stdin:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "stages":
            spans.extend(spans_of(event))
    if not spans:
        print("no event with stages came: give this script the stderr of `nigh run --json`", file=sys.stderr)
        return 2
    service = attributes(**{"service.name": os.environ.get("OTEL_SERVICE_NAME", "nigh")})
    body = {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"scope": {"name": "nigh"}, "spans": spans}]}]}
    request = urllib.request.Request(endpoint(), json.dumps(body).encode(), {"Content-Type": "application/json", **headers()})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            answer = reply.read().decode(errors="replace")
    except (urllib.error.URLError, OSError) as error:
        print(f"{endpoint()}: the spans could not be sent: {error}", file=sys.stderr)
        return 1
    # A collector may take some only, and says so with 200.
    if "rejectedSpans" in answer and json.loads(answer).get("partialSuccess", {}).get("rejectedSpans", "0") not in ("0", 0):
        print(f"{endpoint()}: {answer}", file=sys.stderr)
        return 1
    print(f"{len(spans)} spans of trace {spans[0]['traceId']}")
    return 0


sys.exit(main())

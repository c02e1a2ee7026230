#!/usr/bin/env python3
"""The stages of a run as an OpenTelemetry trace: a span for the run, and one for each stage.

    nigh run JOB.toml --week today --json 2>events.jsonl >result.json
    scripts/otlp_traces.py <events.jsonl

Reads the events that `nigh --json` writes to stderr. The spans go to a collector by OTLP over HTTP, as JSON: to
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or to `v1/traces` below OTEL_EXPORTER_OTLP_ENDPOINT (http://localhost:4318 if neither is set), with the
headers of OTEL_EXPORTER_OTLP_HEADERS. The service is called OTEL_SERVICE_NAME, or nigh. Runs with the same --run-id are one trace.

A run in one process says at its end how long each stage took by the clock; `cpu_s` is an attribute. A run in several processes does not: there
a stage is a span from the first message of progress that names it to the first one of another stage, and a restart begins another span of the run.

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


def nanoseconds(event):
    time = datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00"))
    return round(time.timestamp() * 1_000_000) * 1000


def spans_of(event, stages):
    """The spans of a run. `stages` are names, begins, ends, and attributes."""
    run, epoch, job = (event[name] for name in ("run", "epoch", "job"))
    trace, parent = identifier(16, run), identifier(8, run, job, epoch)

    def span(name, begin, end, of, **more):
        times = {"startTimeUnixNano": str(begin), "endTimeUnixNano": str(end)}
        return {"traceId": trace, "kind": 1, "name": name, **times, "attributes": attributes(**of), **more}

    yield span(job, stages[0][1], stages[-1][2], {"run": run, "job": job, "restarts": epoch}, spanId=parent)
    for number, (name, begin, end, of) in enumerate(stages):
        yield span(name, begin, end, of, spanId=identifier(8, parent, number), parentSpanId=parent)


def in_one_process(event):
    """The stages of the event at the end of a run in one process."""
    at = nanoseconds(event) - sum(round(stage["wall_s"] * 1e9) for stage in event["stages"])
    for stage in event["stages"]:
        until = at + round(stage["wall_s"] * 1e9)
        yield stage["stage"], at, until, {"cpu_s": float(stage["cpu_s"])}
        at = until


def in_several(events):
    """The stages of the messages of progress of a run in several processes."""
    begins = [event for before, event in zip([None, *events], events) if before is None or before["stage"] != event["stage"]]
    for event, after in zip(begins, [*begins[1:], events[-1]]):
        yield event["stage"], nanoseconds(event), nanoseconds(after), {}


def spans_of_events(events):
    progress = {}
    for event in events:
        if event["event"] == "stages":
            yield from spans_of(event, list(in_one_process(event)))
        elif event.get("stage") and event.get("process") is None:
            progress.setdefault((event["job"], event["epoch"]), []).append(event)
    for of_epoch in progress.values():
        yield from spans_of(of_epoch[0], list(in_several(of_epoch)))


def endpoint():
    own = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return own or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318").rstrip("/") + "/v1/traces"


def headers():
    pairs = (pair.partition("=") for pair in os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",") if pair.strip())
    return {name.strip(): urllib.parse.unquote(of.strip()) for name, _, of in pairs}


def main():
    events = []
    for line in sys.stdin:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") in ("stages", "progress"):
            events.append(event)
    spans = list(spans_of_events(events))
    if not spans:
        print("no event of a run with stages came: give this script the stderr of `nigh run --json`", file=sys.stderr)
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

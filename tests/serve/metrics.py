"""metrics.py plain|open: reads an exposition as the Python client of Prometheus does, which refuses OpenMetrics that breaks a
rule, and prints its families as JSON: [{name, type, help, samples: [{name, labels, value}]}]."""
import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_plain

read = {"plain": read_plain, "open": read_open}[sys.argv[1]]
text = sys.stdin.buffer.read().decode()
json.dump(
    [
        {
            "name": f.name,
            "type": f.type,
            "help": f.documentation,
            "samples": [{"name": s.name, "labels": s.labels, "value": s.value} for s in f.samples],
        }
        for f in read(text)
    ],
    sys.stdout,
)

"""Prometheus loads our alert rules, and they fire when they should."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from interop.promtool import find_promtool
from rivals.apache_kafka import ROOT

RULES = ROOT / "docs" / "grafana" / "alerts.yml"
STORY = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'kafka_log_log_end_offset{{job="ottla",instance="a",topic="orders",partition="0"}}'
        values: '0+600x120'
      - series: 'kafka_log_log_end_offset{{job="ottla",instance="b",topic="orders",partition="0"}}'
        values: '0+600x120'
      - series: 'kafka_server_group_coordinator_metrics_committed_offset{{job="ottla",instance="a",group="slow",topic="orders",partition="0"}}'
        values: '0+300x120'
      - series: 'kafka_server_group_coordinator_metrics_committed_offset{{job="ottla",instance="a",group="fast",topic="orders",partition="0"}}'
        values: '0+600x120'
      - series: 'kafka_log_log_directory_usable_bytes{{job="ottla",instance="a",directory="/data"}}'
        values: '5x120'
      - series: 'kafka_log_log_directory_total_bytes{{job="ottla",instance="a",directory="/data"}}'
        values: '100x120'
      - series: 'kafka_raft_active_controller_count{{job="ottla",instance="a"}}'
        values: '1x60 0x60'
      - series: 'kafka_network_request_metrics_errors_total{{job="ottla",instance="a",request="Produce",error="NOT_ENOUGH_REPLICAS"}}'
        values: '0+1200x120'
      - series: 'kafka_network_request_metrics_errors_total{{job="ottla",instance="a",request="Fetch",error="OFFSET_OUT_OF_RANGE"}}'
        values: '0+1200x120'
      - series: 'ottla_certificate_expiry_timestamp_seconds{{job="ottla",instance="a",listener="TLS"}}'
        values: '606000x120'
      - series: 'ottla_certificate_expiry_timestamp_seconds{{job="ottla",instance="a",listener="LATE"}}'
        values: '1206000x120'
      - series: 'ottla_certificate_expiry_timestamp_seconds{{job="ottla",instance="a",listener="LATER"}}'
        values: '1606000x120'
      - series: 'ottla_certificate_expiry_timestamp_seconds{{job="ottla",instance="a",listener="OLD"}}'
        values: '3000x120'
    alert_rule_test:
      - eval_time: 100m
        alertname: OttlaRequestErrors
        exp_alerts:
          - exp_labels: {{severity: warning, instance: a, request: Produce, error: NOT_ENOUGH_REPLICAS}}
            exp_annotations:
              summary: "a answers Produce with NOT_ENOUGH_REPLICAS, 20 times each second"
              description: Clients retry, and some fail. `ottla cluster describe` lists partitions without leader or replicas; the log of the broker has more.
      - eval_time: 100m
        alertname: OttlaCertificateExpires
        exp_alerts:
          - exp_labels: {{severity: warning, job: ottla, instance: a, listener: TLS}}
            exp_annotations:
              summary: "the certificate of listener TLS of a expires in 6d 22h 40m 0s"
              description: Replace the file; the broker reads it again at the next connection.
          - exp_labels: {{severity: warning, job: ottla, instance: a, listener: LATE}}
            exp_annotations:
              summary: "the certificate of listener LATE of a expires in 13d 21h 20m 0s"
              description: Replace the file; the broker reads it again at the next connection.
      - eval_time: 100m
        alertname: OttlaCertificateExpired
        exp_alerts:
          - exp_labels: {{severity: critical, job: ottla, instance: a, listener: OLD}}
            exp_annotations:
              summary: "the certificate of listener OLD of a has expired"
              description: Clients refuse new connections. Replace the file; the broker reads it again at the next connection.
      - eval_time: 100m
        alertname: OttlaGroupLagGrows
        exp_alerts:
          - exp_labels: {{severity: warning, group: slow, topic: orders}}
            exp_annotations:
              summary: "group slow falls behind in orders: 30000 records"
              description: "Its members are too slow, too few, or gone. `ottla groups describe` shows members and lag, `ottla groups watch` the rate."
      - eval_time: 20m
        alertname: OttlaNoController
        exp_alerts: []
      - eval_time: 100m
        alertname: OttlaNoController
        exp_alerts:
          - exp_labels: {{severity: critical, job: ottla}}
            exp_annotations:
              summary: The cluster has no active controller
              description: Topics cannot be created and leaders not be elected. A majority of the voters must run; `ottla cluster quorum` prints them.
      - eval_time: 100m
        alertname: OttlaUnderMinIsr
        exp_alerts: []
"""


@pytest.fixture(scope="module")
def promtool() -> Path:
    found = find_promtool()
    if found is None:
        pytest.skip("promtool is not installed, and apt cannot download Debian's package prometheus")
    return found


def test_prometheus_loads_the_rules(promtool: Path) -> None:
    done = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_growing_lag_a_missing_controller_errors_and_certificates_fire(promtool: Path, tmp_path: Path) -> None:
    story = tmp_path / "story.yml"
    story.write_text(STORY.format(rules=RULES))
    done = subprocess.run([promtool, "test", "rules", story], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

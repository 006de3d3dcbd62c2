"""The Prometheus text."""

import re

from bargein.server import Metrics


def test_the_text_has_every_number():
    """Each metric has help, type and value; labels are escaped."""
    metrics = Metrics()
    metrics.calls_active = 2
    metrics.rejected["server_full"] = 1
    metrics.errors['a"b\\c\nd'] = 3
    metrics.barge_ins = 4
    metrics.calls_waiting = 1
    metrics.lines_lost = 6
    metrics.reconnects = 5
    metrics.webhooks["2xx"] = 7
    text = metrics.exposition()
    assert "\nbargein_calls_active 2\n" in text
    assert '\nbargein_calls_rejected_total{code="server_full"} 1\n' in text
    assert r'bargein_errors_total{code="a\"b\\c\nd"} 3' in text
    assert "\nbargein_barge_ins_total 4\n" in text
    assert "\nbargein_calls_waiting 1\n" in text
    assert "\nbargein_lines_lost_total 6\n" in text
    assert "\nbargein_reconnects_total 5\n" in text
    assert '\nbargein_webhooks_total{status="2xx"} 7\n' in text
    assert text.endswith("\n")


def test_durations_fall_into_their_buckets():
    """Buckets are cumulative, and the last holds every call."""
    metrics = Metrics()
    for duration_s in (0.5, 1.0, 45, 4000):
        metrics.call_ended("hangup", duration_s)
    text = metrics.exposition()
    buckets = re.findall(r'duration_seconds_bucket\{le="([^"]+)"\} (\d+)', text)
    assert buckets[0] == ("1", "2")
    assert dict(buckets)["60"] == "3"
    assert buckets[-2:] == [("1800", "3"), ("+Inf", "4")]
    assert "bargein_call_duration_seconds_sum 4046.500" in text
    assert 'bargein_calls_total{reason="hangup"} 4' in text


def test_every_line_follows_the_format():
    """Every line is a comment or a name, optional labels, and a number."""
    metrics = Metrics()
    metrics.call_ended("hangup", 1)
    label = r"\w+=\"([^\"\\]|\\.)*\""
    labels = rf"(\{{{label}(,{label})*\}})?"
    line = re.compile(rf"# (HELP|TYPE) \w+ .+|bargein_\w+{labels} [0-9.]+", re.ASCII)
    for text in metrics.exposition().splitlines():
        assert line.fullmatch(text), text


def test_no_metric_is_shown_twice():
    """Each metric has its help once, and each sample is there once: a scraper refuses others."""
    metrics = Metrics()
    metrics.errors["bad_message"] = 1
    lines = metrics.exposition().splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# HELP ")]
    samples = [line.rpartition(" ")[0] for line in lines if line[0] != "#"]
    assert sorted(names) == sorted(set(names))
    assert sorted(samples) == sorted(set(samples))

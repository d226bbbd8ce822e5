//! iperf3 `-J`.
//!
//! Sums over all streams are under "end": for TCP "sum_sent" and "sum_received", for UDP "sum" with jitter and loss. A
//! run that failed prints "end": {} and "error" with exit status 0.

use super::text::{json_number, lossy, object};
use super::{Declared, Invalid, Metrics, Output, excerpt};
use serde_json::Value;

pub(super) const METRICS: &[Declared] = &[
    Declared::higher("sent_bits_per_s", "bit/s", "/end/sum_sent/bits_per_second"),
    Declared::higher("received_bits_per_s", "bit/s", "/end/sum_received/bits_per_second"),
    Declared::lower("retransmits", "segments", "TCP: /end/sum_sent/retransmits"),
    Declared::higher("udp_bits_per_s", "bit/s", "UDP: /end/sum/bits_per_second"),
    Declared::lower("udp_jitter_ms", "ms", "UDP: /end/sum/jitter_ms"),
    Declared::lower("udp_lost_percent", "%", "UDP: /end/sum/lost_percent"),
    Declared::lower(
        "cpu_local_percent",
        "%",
        "/end/cpu_utilization_percent/host_total; above 100 with several CPUs",
    ),
    Declared::lower("cpu_remote_percent", "%", "/end/cpu_utilization_percent/remote_total"),
];

const WHERE: [(&str, &str); 8] = [
    ("/end/sum_sent/bits_per_second", "sent_bits_per_s"),
    ("/end/sum_received/bits_per_second", "received_bits_per_s"),
    ("/end/sum_sent/retransmits", "retransmits"),
    ("/end/sum/bits_per_second", "udp_bits_per_s"),
    ("/end/sum/jitter_ms", "udp_jitter_ms"),
    ("/end/sum/lost_percent", "udp_lost_percent"),
    ("/end/cpu_utilization_percent/host_total", "cpu_local_percent"),
    ("/end/cpu_utilization_percent/remote_total", "cpu_remote_percent"),
];

pub(super) fn parse(output: &Output) -> Result<Metrics, Invalid> {
    let document = object("iperf3", &lossy(&output.stdout))?;
    if let Some(error) = document.get("error") {
        let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        return Err(Invalid::because(format!("iperf3 failed: {}", excerpt(&text))));
    }
    if document.get("end").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty) {
        return Err(Invalid::because("iperf3's \"end\" is empty: it did not end its run"));
    }
    let mut metrics = Metrics::default();
    for (pointer, name) in WHERE {
        if let Some(value) = document.pointer(pointer) {
            let value = json_number(value)
                .ok_or_else(|| Invalid::because(format!("iperf3's {pointer} is not a number")))?;
            if name.ends_with("bits_per_s") && value <= 0.0 {
                return Err(Invalid::because(format!(
                    "iperf3's {pointer} is {value}: nothing was transferred"
                )));
            }
            metrics.put(name, value)?;
        }
    }
    if metrics.is_empty() { Err(Invalid::because("iperf3's \"end\" holds no sums")) } else { Ok(metrics) }
}

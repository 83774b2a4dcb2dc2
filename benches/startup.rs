//! From the start of the process to its first answer, and the memory it has then.
//!
//! `cargo bench --bench startup`; fails when a bound is broken. The bounds are for a quiet machine.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

const RUNS: usize = 50;
const SLOWEST_MEDIAN: Duration = Duration::from_millis(5);
const MOST_MEMORY_KIB: u64 = 12 * 1024;

/// The first request in both lifecycles, and one for the whole list of tools.
const REQUESTS: [(&str, &str); 3] = [
    (
        "initialize",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
    ),
    (
        "server/discover",
        r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ),
    (
        "tools/list",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ),
];

fn main() -> ExitCode {
    let mut kept = true;
    for (name, request) in REQUESTS {
        let mut runs: Vec<(Duration, u64)> = (0..RUNS).map(|_| first_answer(request)).collect();
        let most = runs.iter().map(|(_, memory)| *memory).max().unwrap();
        runs.sort();
        let (median, slow) = (runs[RUNS / 2].0, runs[RUNS * 95 / 100].0);
        println!(
            "{name:16} median {:.2} ms, 95 % within {:.2} ms, at most {:.1} MiB resident",
            median.as_secs_f64() * 1e3,
            slow.as_secs_f64() * 1e3,
            most as f64 / 1024.0
        );
        kept &= median <= SLOWEST_MEDIAN && most <= MOST_MEMORY_KIB;
    }
    println!("bounds: median 5 ms, 12 MiB: {}", if kept { "kept" } else { "broken" });
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How long it takes from the spawn to the first line, and the resident memory in KiB after it.
fn first_answer(request: &str) -> (Duration, u64) {
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_quantplan"))
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{request}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let took = started.elapsed();
    assert!(line.contains("\"result\""), "{line}");
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    drop(input);
    child.wait().unwrap();
    (took, resident)
}

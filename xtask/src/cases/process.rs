//! Processes with a limit of time, and as many at once as the machine has cores.

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What a process left behind.
pub(super) struct Output {
    /// How it ended; nothing if it was ended for taking too long.
    pub(super) status: Option<ExitStatus>,
    /// What it wrote, both ways together.
    pub(super) text: String,
}

/// Runs a command to its end, or for as long as one has patience.
pub(super) fn output(command: &mut Command, patience: Duration) -> Result<Output> {
    let mut file = tempfile::tempfile().context("cannot make a file for output")?;
    let copy = |file: &File| file.try_clone().context("cannot make a file for output");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(copy(&file)?)
        .stderr(copy(&file)?)
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().context("cannot wait for a process")? {
            Some(status) => break Some(status),
            None if start.elapsed() > patience => {
                child.kill().context("cannot end a process")?;
                child.wait().context("cannot wait for a process")?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(Output {
        status,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// Does something for each item, as many at once as there are cores, under a progress bar.
pub(super) fn for_each<I: Sync, T: Send>(
    items: &[I],
    name: impl Fn(&I) -> String + Sync,
    work: impl Fn(usize, &I) -> T + Sync,
) -> Result<Vec<T>> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}")?;
    let bar = ProgressBar::new(items.len() as u64).with_style(style);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<T>>> = Mutex::new(items.iter().map(|_| None).collect());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((i, item)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
                {
                    bar.set_message(name(item));
                    let result = work(i, item);
                    results.lock().expect("no thread panics")[i] = Some(result);
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let results = results.into_inner().expect("no thread panics");
    Ok(results
        .into_iter()
        .map(|r| r.expect("every item was worked on"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_ended() {
        let mut command = Command::new("sleep");
        let out = output(command.arg("60"), Duration::from_millis(50)).unwrap();
        assert!(out.status.is_none());
    }

    #[test]
    fn results_keep_the_order_of_the_items() {
        let squares = for_each(&[1, 2, 3, 4, 5], i32::to_string, |_, x| x * x).unwrap();
        assert_eq!(squares, [1, 4, 9, 16, 25]);
    }
}

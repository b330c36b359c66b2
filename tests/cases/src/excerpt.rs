//! A selection of cases, copied to a folder of the same format.

use crate::format::RawCase;
use anyhow::{Context, Result};
use safetensors::SafeTensors;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

/// Copies the cases with these names from one folder to another.
///
/// # Errors
/// If a file cannot be read or written.
pub fn excerpt(from: &Path, to: &Path, ids: &HashSet<String>) -> Result<()> {
    let text = |name: &str| {
        let path = from.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let cases = text("cases.jsonl")?;
    let mut kept = vec![];
    for line in cases.lines() {
        let raw: RawCase = serde_json::from_str(line)?;
        if ids.contains(&raw.id) {
            kept.push((raw, line));
        }
    }
    let functions: HashSet<&str> = kept.iter().map(|(raw, _)| raw.atg.as_str()).collect();
    let ops = text("ops.jsonl")?;
    let ops: Vec<&str> = ops
        .lines()
        .filter(|line| {
            let op: Result<crate::format::RawOp, _> = serde_json::from_str(line);
            op.is_ok_and(|op| functions.contains(op.atg.as_str()))
        })
        .collect();
    let bytes = fs::read(from.join("tensors.safetensors"))?;
    let tensors = SafeTensors::deserialize(&bytes)?;
    let mut used = BTreeMap::new();
    for (_, line) in &kept {
        let value: serde_json::Value = serde_json::from_str(line)?;
        strings(&value, &mut |s| {
            if let Ok(view) = tensors.tensor(s) {
                used.insert(s.to_string(), view);
            }
        });
    }
    fs::create_dir_all(to)?;
    let joined = |lines: &[&str]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
    let lines: Vec<&str> = kept.iter().map(|(_, line)| *line).collect();
    fs::write(to.join("cases.jsonl"), joined(&lines))?;
    fs::write(to.join("ops.jsonl"), joined(&ops))?;
    fs::write(to.join("tensors.safetensors"), safetensors::serialize(used, None)?)?;
    Ok(())
}

/// Every string in a JSON value: the keys of tensors are among them.
fn strings(value: &serde_json::Value, f: &mut dyn FnMut(&str)) {
    match value {
        serde_json::Value::String(s) => f(s),
        serde_json::Value::Array(items) => items.iter().for_each(|v| strings(v, f)),
        serde_json::Value::Object(map) => map.values().for_each(|v| strings(v, f)),
        _ => {}
    }
}

/// The cases that the repository keeps: of each P0 function two, of each P1 function one, and one more edge case
/// where there is one. Small ones first.
///
/// # Errors
/// If the folder cannot be read.
pub fn selection(from: &Path) -> Result<HashSet<String>> {
    let raws: Vec<RawCase> = crate::load::lines(&from.join("cases.jsonl"))?;
    let bytes = fs::read(from.join("tensors.safetensors"))?;
    let tensors = SafeTensors::deserialize(&bytes)?;
    let size = |raw: &RawCase| -> usize {
        let keys = raw.outputs.iter().chain(&raw.cotangents).chain(&raw.grads).flatten();
        let inputs = raw.requires_grad.iter();
        keys.chain(inputs)
            .filter_map(|k| tensors.tensor(k).ok())
            .map(|t| t.data().len())
            .sum()
    };
    let mut by_op: HashMap<&str, Vec<&RawCase>> = HashMap::new();
    for raw in raws.iter().filter(|r| r.tier == "P0" || r.tier == "P1") {
        by_op.entry(&raw.atg).or_default().push(raw);
    }
    let mut ids = HashSet::new();
    for cases in by_op.values_mut() {
        // Those with gradients say most; empty ones least.
        cases.sort_by_key(|r| (r.grads.iter().flatten().count() == 0, size(r), r.id.clone()));
        let plain = cases.iter().filter(|r| r.group != "edge" && size(r) >= 48);
        let edge = cases.iter().filter(|r| r.group == "edge");
        let (plain_wanted, edge_wanted) = if cases[0].tier == "P0" { (1, 2) } else { (1, 0) };
        let chosen = plain.take(plain_wanted).chain(edge.take(edge_wanted));
        let mut chosen: Vec<&RawCase> = chosen.copied().collect();
        let wanted = plain_wanted + usize::from(edge_wanted > 0);
        let rest = cases.iter().filter(|r| !chosen.iter().any(|c| c.id == r.id)).copied();
        let more: Vec<&RawCase> = rest.take(wanted.saturating_sub(chosen.len())).collect();
        chosen.extend(more);
        ids.extend(chosen.into_iter().map(|r| r.id.clone()));
    }
    Ok(ids)
}

//! Cargo's configuration, as far as a build with other flags must honour it.
//!
//! Cargo has no stable command that prints its configuration, so the files are read here, by Cargo's rules: every
//! `.cargo/config.toml` from the working directory upwards, then the one in Cargo's home, each with the files that it
//! includes; arrays are joined, nearer files last; `--config` arguments come nearest.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The merged configuration.
#[derive(Debug, Default)]
pub(crate) struct Config {
    table: Table,
}

impl Config {
    /// Reads the configuration that Cargo would read with these arguments.
    pub(crate) fn read(arguments: &[OsString]) -> Result<Config> {
        let directory = std::env::current_dir().context("cannot tell the working directory")?;
        let mut config = Config::default();
        for layer in command_line(arguments)? {
            config.add_farther(layer);
        }
        for file in files(&directory, cargo_home()) {
            config.add_farther(load(&file)?);
        }
        Ok(config)
    }

    #[cfg(test)]
    pub(crate) fn from_text(text: &str) -> Config {
        Config {
            table: parse(text, "a test").expect("the test's text is right"),
        }
    }

    fn add_farther(&mut self, mut farther: Table) {
        std::mem::swap(&mut self.table, &mut farther);
        let nearer = farther;
        merge(&mut self.table, nearer);
    }

    /// A list of words: an array of strings, or one string with spaces.
    pub(crate) fn words(&self, path: &[&str]) -> Option<Vec<String>> {
        let (last, folders) = path.split_last()?;
        let mut table = &self.table;
        for folder in folders {
            table = table.get(*folder)?.as_table()?;
        }
        words(table.get(*last)?)
    }

    /// The tables `[target.NAME]`.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (&str, &Table)> {
        let targets = self.table.get("target").and_then(Value::as_table);
        targets
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_table()?)))
    }
}

/// The words of a value.
pub(crate) fn words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(text.split_whitespace().map(str::to_owned).collect()),
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn parse(text: &str, place: &str) -> Result<Table> {
    text.parse::<Table>()
        .with_context(|| format!("cannot parse Cargo's configuration in {place}"))
}

/// Reads a file and what it includes: included files lie under it, the last of them nearest.
fn load(file: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut own = parse(&text, &file.display().to_string())?;
    let mut table = Table::new();
    let included = match own.remove("include") {
        Some(Value::Array(files)) => files,
        Some(one) => vec![one],
        None => Vec::new(),
    };
    for entry in included {
        let (path, optional) = match &entry {
            Value::Table(entry) => (entry.get("path"), entry.get("optional").and_then(Value::as_bool)),
            path => (Some(path), None),
        };
        let Some(path) = path.and_then(Value::as_str) else {
            continue;
        };
        let path = file.with_file_name(path);
        if path.is_file() || optional != Some(true) {
            merge(&mut table, load(&path)?);
        }
    }
    merge(&mut table, own);
    Ok(table)
}

/// Lays a nearer table over a farther one.
fn merge(under: &mut Table, nearer: Table) {
    for (key, value) in nearer {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(nearer)) => merge(under, nearer),
            (Some(Value::Array(under)), Value::Array(nearer)) => under.extend(nearer),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// The layers of `--config` arguments, the nearest first.
fn command_line(arguments: &[OsString]) -> Result<Vec<Table>> {
    let mut layers = Vec::new();
    let mut rest = arguments.iter().map(|a| a.to_string_lossy());
    while let Some(argument) = rest.next() {
        let value = match argument.strip_prefix("--config=") {
            Some(value) => Some(value.to_owned()),
            None if argument == "--config" => rest.next().map(|v| v.into_owned()),
            None => None,
        };
        if let Some(value) = value {
            layers.push(match Path::new(&value) {
                file if file.is_file() => load(file)?,
                _ => parse(&value, "`--config`")?,
            });
        }
    }
    layers.reverse();
    Ok(layers)
}

fn cargo_home() -> Option<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}

/// The configuration files, the nearest first.
fn files(directory: &Path, home: Option<PathBuf>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = directory.ancestors().map(|folder| folder.join(".cargo")).collect();
    if let Some(home) = home
        && !folders.contains(&home)
    {
        folders.push(home);
    }
    // Where both names exist, Cargo reads the one without an ending.
    let file = |folder: PathBuf| {
        ["config", "config.toml"]
            .map(|name| folder.join(name))
            .into_iter()
            .find(|f| f.is_file())
    };
    folders.into_iter().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layered(layers: &[&str]) -> Config {
        let mut config = Config::default();
        for layer in layers {
            config.add_farther(parse(layer, "test").unwrap());
        }
        config
    }

    #[test]
    fn arrays_are_joined_and_nearer_values_come_last() {
        let config = layered(&["build.rustflags = ['-C', 'near']", "build.rustflags = ['far']"]);
        assert_eq!(config.words(&["build", "rustflags"]).unwrap(), ["far", "-C", "near"]);
    }

    #[test]
    fn a_nearer_string_replaces_a_farther_one() {
        let config = layered(&["build.rustflags = 'a b'", "build.rustflags = 'c'"]);
        assert_eq!(config.words(&["build", "rustflags"]).unwrap(), ["a", "b"]);
        assert!(config.words(&["build", "target"]).is_none());
    }

    #[test]
    fn the_nearest_file_comes_first_and_home_last() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        for folder in [inner.join(".cargo"), dir.path().join(".cargo"), dir.path().join("home")] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("config.toml"), "").unwrap();
        }
        let found = files(&inner, Some(dir.path().join("home")));
        let expected = ["inner/.cargo", ".cargo", "home"].map(|f| dir.path().join(f).join("config.toml"));
        assert_eq!(found, expected);
    }

    #[test]
    fn included_files_lie_under_the_file_that_includes_them() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(
            "config.toml",
            "include = ['a.toml', {path = 'b.toml', optional = true}, {path = 'gone.toml', optional = true}]\nbuild.target = 'own'",
        );
        write("a.toml", "build = {target = 'a', rustflags = ['a'], jobs = 1}");
        write("b.toml", "build = {jobs = 2, rustflags = ['b']}");
        let table = load(&dir.path().join("config.toml")).unwrap();
        assert_eq!(table["build"]["target"].as_str(), Some("own"));
        assert_eq!(table["build"]["jobs"].as_integer(), Some(2));
        assert_eq!(words(&table["build"]["rustflags"]).unwrap(), ["a", "b"]);
    }

    #[test]
    fn config_arguments_are_read() {
        let arguments = [
            "--config",
            "build.jobs=1",
            "--release",
            "--config=build.rustflags=['x']",
        ];
        let layers = command_line(&arguments.map(OsString::from)).unwrap();
        assert_eq!(layers.len(), 2);
        assert!(layers[0]["build"].get("rustflags").is_some());
    }
}

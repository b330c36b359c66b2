//! Debian's packages.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

/// Installs the packages that are missing: as root, through sudo, or else by telling the user what to type.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    let missing: Vec<&str> = packages.iter().copied().filter(|p| !is_installed(p)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let wanted = missing.join(" ");
    if !runs("apt-get", &["--version"]) {
        bail!("this system has no apt-get; install what Debian calls {wanted}");
    }
    let words = format!("apt-get update && apt-get install --no-install-recommends -y {wanted}");
    let mut command = match () {
        () if is_root() => Command::new("sh"),
        () if runs("sudo", &["-n", "true"]) => {
            let mut command = Command::new("sudo");
            command.arg("sh");
            command
        }
        () => bail!("packages are missing, and this user may not install them. As root, type:\n\n    {words}\n"),
    };
    eprintln!("      {words}");
    let quiet = words.replace("apt-get ", "DEBIAN_FRONTEND=noninteractive apt-get -q ");
    let status = command
        .args(["-c", &quiet])
        .stdin(Stdio::null())
        .status()
        .context("cannot run apt-get")?;
    if !status.success() {
        bail!("`{words}` failed");
    }
    Ok(())
}

fn is_installed(package: &str) -> bool {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f=${db:Status-Status}", package])
        .output();
    output.is_ok_and(|o| o.stdout == b"installed")
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|o| o.stdout.trim_ascii() == b"0")
}

/// Whether a command is there and succeeds.
pub(super) fn runs(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|s| s.success())
}

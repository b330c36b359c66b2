//! `cargo xtask ops-table`: the table of LibTorch's C functions, from torch-sys and from PyTorch's own records.
//!
//! The signatures are those of torch-sys' header; which of a function's arguments may be missing, and how many results
//! it gives, is read in the C++ code behind it; what it writes to, whether it is a view, draws random numbers or has a
//! shape that depends on values, stands in PyTorch's `native_functions.yaml`.

mod bindings;
mod facts;

use crate::chores::{cargo_command, root};
use crate::setup;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the table is, from the workspace.
const TABLE: &str = "pass/graph/src/ops/atg.tsv";
const HEADER: &str = "# LibTorch 2.13 C functions as torch-sys 0.26 binds them, with facts from native_functions.yaml. \
                      Data, not code: keep it sorted.\n\
                      # name\taten base name\tparameters\tresults (* = list)\tfacts\n";

/// Where the sources are, and what to do.
#[derive(Args)]
pub(crate) struct Options {
    /// PyTorch's `native_functions.yaml`; left out, it comes from the wheel that set-up uses, which is downloaded
    #[arg(long, value_name = "FILE")]
    native_functions: Option<PathBuf>,
    /// Write nothing; fail if the table is not what the sources say
    #[arg(long)]
    check: bool,
}

/// Writes the table, or checks it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let bindings = torch_sys()?.join("libtch");
    let read = |file: &Path| fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
    let header = read(&bindings.join("torch_api_generated.h"))?;
    let code = read(&bindings.join("torch_api_generated.cpp"))?;
    let yaml = match &options.native_functions {
        Some(file) => read(file)?,
        None => setup::torch_file("torchgen/packaged/ATen/native/native_functions.yaml")?,
    };
    let new = table(&header, &code, &yaml)?;
    let file = root().join(TABLE);
    let functions = new.lines().filter(|l| !l.starts_with('#')).count();
    match (read(&file)? == new, options.check) {
        (true, _) => println!("{TABLE} is what the sources say: {functions} functions"),
        (false, true) => bail!("{TABLE} is not what the sources say; write it anew with `cargo xtask ops-table`"),
        (false, false) => {
            fs::write(&file, &new).with_context(|| format!("cannot write {}", file.display()))?;
            println!("{TABLE} is written: {functions} functions");
        }
    }
    Ok(())
}

/// The folder of torch-sys' sources, of the version that the workspace uses.
fn torch_sys() -> Result<PathBuf> {
    let output = cargo_command()
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .context("cannot run Cargo")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("Cargo's metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("Cargo names no packages")?;
    let package = packages
        .iter()
        .find(|p| p["name"] == "torch-sys")
        .context("the workspace has no torch-sys")?;
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    Ok(manifest.parent().context("a manifest lies in a folder")?.to_owned())
}

/// The table's text.
fn table(header: &str, code: &str, yaml: &str) -> Result<String> {
    let schemas = facts::Schemas::read(yaml)?;
    let mut rows = vec![];
    for function in bindings::functions(header, code)? {
        let facts = schemas.facts(&function);
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .map(|p| format!("{}:{}", p.name, p.kind))
            .collect();
        let results = function.results.map_or("*".to_owned(), |n| n.to_string());
        rows.push(format!(
            "{}\t{}\t{}\t{results}\t{facts}\n",
            function.name,
            function.base,
            parameters.join(",")
        ));
    }
    rows.sort_unstable_by(|a, b| a.split('\t').next().cmp(&b.split('\t').next()));
    Ok(HEADER.to_owned() + &rows.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions in the form of torch-sys: their declarations, the calls that their code makes, and how many results.
    const BINDINGS: [(&str, &str, usize); 9] = [
        (
            "void atg_put_(tensor *, tensor self, tensor mask);",
            "self->put_(*self, (mask ? x : y))",
            1,
        ),
        (
            "void atg_pick(tensor *, tensor self, tensor *at_data, int at_len, int64_t n_v, uint8_t n_null);",
            "torch::pick(*self, of_carray_tensor_opt(at_data, at_len), n_null)",
            2,
        ),
        (
            "void atg_fold_dims(tensor *, tensor self, int64_t *dim_data, int dim_len, int keep, int dtype);",
            "torch::fold(*self, dim_data == nullptr ? x : y, (bool)keep, dtype < 0 ? x : at::ScalarType(dtype))",
            1,
        ),
        (
            "void atg_put_out(tensor *, tensor out, tensor self, scalar by);",
            "torch::put_out(*out, *self, *by)",
            1,
        ),
        (
            "tensor *atg_cut(tensor self, double *at_data, int at_len);",
            "torch::cut(*self, at_data, at_len)",
            1,
        ),
        (
            "void atg_roll(tensor *, double p, char* mode_ptr, int mode_len, int options_kind, int options_device);",
            "torch::roll(p, mode_ptr, at::ScalarType(options_kind), device_of_int(options_device))",
            1,
        ),
        (
            "void atg_totype(tensor *, tensor self, int scalar_type);",
            "self->toType(at::ScalarType(scalar_type))",
            1,
        ),
        // Not in the table: it writes to a list that the caller made, or tells a number, or takes a layout.
        (
            "void atg_cut_out(tensor *out_data, int out_len, tensor self);",
            "torch::cut_out(x, *self)",
            0,
        ),
        ("int64_t atg_count(tensor self);", "torch::count(*self)", 0),
    ];

    const YAML: &str = "\
- func: put_(Tensor(a!) self, Tensor? mask) -> Tensor(a!)
- func: pick(Tensor self, Tensor?[] at, int? n=None) -> (Tensor, Tensor)
  tags: [core, dynamic_output_shape]
- func: fold.dims(Tensor self, int[1]? dim, bool keep=False, *, ScalarType? dtype=None) -> Tensor
  tags: pointwise
- func: fold(Tensor self) -> Tensor
  tags: nondeterministic_seeded
- func: put.out(Tensor self, Scalar by, *, Tensor(a!) out) -> Tensor(a!)
- func: cut(Tensor(a -> *) self, float[] at) -> Tensor(a)[]
- func: roll(float p, str mode, *, ScalarType? dtype=None) -> Tensor
  tags: nondeterministic_seeded
";

    const TABLE: &str = "\
cut\tcut\tself:t,at:F\t*\tview
fold_dims\tfold\tself:t,dim:I?,keep:b,dtype:k?\t1\tpointwise
pick\tpick\tself:t,at:T?,n:i?\t2\tdyn
put_\tput_\tself:t,mask:t?\t1\tmut=0
put_out\tput_out\tout:t,self:t,by:s\t1\tmut=0
roll\troll\tp:f,mode:str,options_kind:k,options_device:d\t1\trand
totype\ttoType\tself:t,scalar_type:k\t1\tview
";

    fn made(bindings: &[(&str, &str, usize)]) -> Result<String> {
        let (mut header, mut code) = (String::new(), String::new());
        for (declaration, call, results) in bindings {
            let stored = (0..*results).map(|k| format!("    out__[{k}] = x;\n"));
            let signature = declaration.trim_end_matches(';');
            header += &format!("{declaration}\n");
            code += &format!(
                "{signature} {{\n  PROTECT(\n    {call};\n{}  )\n}}\n\n",
                stored.collect::<String>()
            );
        }
        table(&header, &code, YAML)
    }

    #[test]
    fn every_kind_of_parameter_result_and_fact_is_read() {
        assert_eq!(made(&BINDINGS).unwrap(), HEADER.to_owned() + TABLE);
    }

    #[test]
    fn an_unknown_kind_of_parameter_is_named() {
        let error = made(&[("void atg_put_(tensor *, tensor self, wchar_t w);", "self->put_(w)", 1)]).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("atg_put_") && text.contains("wchar_t w"), "{text}");
    }
}

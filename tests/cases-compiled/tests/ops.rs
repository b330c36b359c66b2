//! The cases that the repository keeps, through compiled code.

use cotangent_cases::load;
use cotangent_cases_compiled::run_cases;
use std::path::Path;

#[test]
fn every_kept_case_gives_libtorchs_numbers_and_p0_goes_through_rules_of_ours() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases/ops");
    let summary = run_cases(&load(&folder).expect("the folder is readable"));
    let report = &summary.report;
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    assert!(report.passed > 100, "{} passed", report.passed);
}

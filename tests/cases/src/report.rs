//! What became of the cases.

/// What became of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as recorded.
    Passed,
    /// Something is not; in words.
    Failed(String),
    /// The case was declined, with the reason.
    Refused(String),
}

/// What became of many.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many passed.
    pub passed: usize,
    /// Name and reason of each that failed.
    pub failures: Vec<(String, String)>,
    /// Name and reason of each that was declined.
    pub refusals: Vec<(String, String)>,
}

impl Report {
    /// Adds the outcome of the case of that name.
    pub fn add(&mut self, id: &str, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed(why) => self.failures.push((id.to_string(), why)),
            Outcome::Refused(why) => self.refusals.push((id.to_string(), why)),
        }
    }

    /// Prints the cases that did not pass, each with the reason.
    pub fn print(&self) {
        for (id, why) in &self.refusals {
            println!("refused {id}: {why}");
        }
        for (id, why) in &self.failures {
            println!("FAILED {id}: {why}");
        }
    }

    /// How many passed, failed and were refused, in words.
    pub fn counts(&self) -> String {
        let (failed, refused) = (self.failures.len(), self.refusals.len());
        format!("passed {}, failed {failed}, refused {refused}", self.passed)
    }
}

//! A study or a summary of any of the studies in the list.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::committed::CommittedTables;
use super::figure::Figure;
use super::host_rows::HostRows;
use super::plan::{StudyInput, StudyPlan};
use super::studies;
use super::study::{Runs, Study};
use crate::records::Week;
use crate::sheet::Sheet;
use crate::state::{PastWeek, Results, Store};

macro_rules! any {
    ($($(#[$what:meta])* $Name:ident: $Study:ty;)*) => {
        /// A study, whichever it is: its table of a job file. See [`Study`] for the methods.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum AnyStudy {
            $($(#[$what])* $Name($Study),)*
        }

        /// The summary of a study, whichever it is: `summary.json`, whose `kind` is the name of the
        /// study.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum StudySummary {
            $($(#[$what])* $Name(<$Study as Study>::Summary),)*
        }

        #[allow(missing_docs, reason = "the methods of the trait")]
        impl AnyStudy {
            pub fn name(&self) -> &'static str {
                match self { $(AnyStudy::$Name(_) => <$Study>::NAME,)* }
            }

            pub fn store(&mut self) -> &mut Option<PathBuf> {
                match self { $(AnyStudy::$Name(study) => Study::store(study),)* }
            }

            pub fn week(&mut self) -> Option<&mut Option<Week>> {
                match self { $(AnyStudy::$Name(study) => Study::week(study),)* }
            }

            pub fn input(&mut self) -> Option<&mut Vec<String>> {
                match self { $(AnyStudy::$Name(study) => Study::input(study),)* }
            }

            pub fn against(&mut self) -> Option<&mut Vec<String>> {
                match self { $(AnyStudy::$Name(study) => Study::against(study),)* }
            }

            pub fn figures(&self) -> &'static [Figure] {
                match self { $(AnyStudy::$Name(_) => <$Study>::FIGURES,)* }
            }

            pub fn host_rows(&self) -> Option<HostRows> {
                match self { $(AnyStudy::$Name(_) => <$Study>::HOST_ROWS,)* }
            }

            pub fn runs(&self) -> Runs {
                match self { $(AnyStudy::$Name(_) => <$Study>::RUNS,)* }
            }

            #[cfg(feature = "bench")]
            pub fn bench(&self) -> Option<nigh_bench::AnyBench> {
                match self { $(AnyStudy::$Name(_) => <$Study>::BENCH,)* }
            }

            /// All studies, each as a job without any key.
            pub fn all() -> Vec<AnyStudy> {
                vec![$(AnyStudy::$Name(<$Study>::default()),)*]
            }

            pub fn compares_hosts(&self) -> bool {
                match self { $(AnyStudy::$Name(study) => study.compares_hosts(),)* }
            }

            pub fn works_without_weeks(&self) -> bool {
                match self { $(AnyStudy::$Name(study) => study.works_without_weeks(),)* }
            }

            pub fn find(&self, store: &Store, notice: &dyn Fn(&str)) -> Result<StudyInput> {
                match self { $(AnyStudy::$Name(study) => study.find(store, notice),)* }
            }

            pub fn weeks_read<'a>(&self, weeks: &'a [PastWeek]) -> &'a [PastWeek] {
                match self { $(AnyStudy::$Name(study) => study.weeks_read(weeks),)* }
            }

            pub fn lasting_bytes(&self, plan: &StudyPlan) -> u64 {
                match self { $(AnyStudy::$Name(study) => study.lasting_bytes(plan),)* }
            }

            pub fn run(&self, cx: &mut Context, plan: &StudyPlan) -> Result<Option<StudySummary>> {
                match self {
                    $(AnyStudy::$Name(study) => Ok(Study::run(study, cx, plan)?.map(StudySummary::$Name)),)*
                }
            }
        }

        impl StudySummary {
            /// Reads the summary of committed results, by the name of their folder.
            ///
            /// # Errors
            /// Names the file that is missing or damaged.
            pub fn read(store: &Store, name: &str, commit: u64) -> Result<StudySummary> {
                $(if name == <$Study>::NAME {
                    return Ok(StudySummary::$Name(CommittedTables::<$Study>::numbered(store, commit)?.summary));
                })*
                let path = Results::of(store, name, commit).committed_file("summary.json");
                anyhow::bail!("{}: this version of nigh has no study {name}", path.display());
            }

            /// The name and the heading of the study.
            pub fn titled(&self) -> (&'static str, &'static str) {
                match self { $(StudySummary::$Name(_) => (<$Study>::NAME, <$Study>::TITLE),)* }
            }

            /// The last week that it is about.
            pub fn week(&self) -> Option<Week> {
                match self { $(StudySummary::$Name(summary) => <$Study>::last_week(summary),)* }
            }

            /// Names the store as the user does.
            pub fn set_store(&mut self, store: PathBuf) {
                match self { $(StudySummary::$Name(summary) => *<$Study>::store_of(summary) = store,)* }
            }

            /// The text that `run` and `show` print; `tables` is the folder of its tables.
            pub fn report(&self, tables: &Path) -> Sheet {
                let mut sheet = match self {
                    $(StudySummary::$Name(summary) => <$Study>::report(summary),)*
                };
                sheet.fact("Tables", tables.display().to_string());
                sheet
            }
        }
    };
}

studies!(any);

impl AnyStudy {
    /// The job file that is kept with the tables.
    ///
    /// # Errors
    /// If the job cannot be written as TOML.
    pub fn job_text(&self) -> Result<String> {
        toml::to_string(self).context("cannot write the job as TOML")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::job_file::AnyJob;

    macro_rules! defaults {
        ($($(#[$what:meta])* $Name:ident: $Study:ty;)*) => {
            [$(AnyStudy::$Name(<$Study>::default()),)*]
        };
    }

    #[test]
    fn a_study_is_written_as_it_is_read() {
        for study in studies!(defaults) {
            let text = study.job_text().unwrap();
            assert!(text.starts_with(&format!("[{}]\n", study.name())), "{text}");
            let AnyJob::Study(read) = toml::from_str(&text).unwrap() else { panic!("a study: {text}") };
            assert_eq!(read.job_text().unwrap(), text);
        }
    }

    #[test]
    fn every_study_has_tables() {
        let names = studies!(defaults).map(|study| study.name());
        let of_tables = crate::tables::studies::RESULTS.iter().map(|results| results.folder);
        assert_eq!(BTreeSet::from(names), of_tables.collect());
    }
}

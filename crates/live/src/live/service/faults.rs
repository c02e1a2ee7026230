//! Other processes that are gone, or do not answer: what is done then is refused with 503, all of
//! them start again, and the engine is read from the store and the journal.

use std::time::Duration;

use anyhow::Result;

use super::{Engine, LOOK, Pending, Refusal, Service};

/// What an engine is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EngineState {
    Whole,
    /// A batch that is not taken was applied in part: only what was said of changes is right.
    InPart,
    /// All but the changes is dropped.
    ChangesOnly,
}

impl Service {
    /// Why nothing is taken until other processes run again, which are being started; `None` if all
    /// is well.
    pub fn fault(&self) -> Option<String> {
        self.others.lock().fault().map(str::to_owned)
    }

    /// How often other processes were started again.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// After which time without a request [`Service::look`] is to be called; `None` if there is no
    /// other process.
    pub fn wait(&self) -> Option<Duration> {
        (self.others.lock().count() > 0).then_some(LOOK)
    }

    /// Whether a process is gone, or does not answer: [`Service::mend`] starts all again.
    pub fn look(&mut self) -> bool {
        let mut others = self.others.lock();
        if others.is_silent_for(LOOK) {
            others.look();
        } else {
            others.notice_ended();
        }
        others.fault().is_some()
    }

    /// Starts all processes again after a fault. The next request gets the reason if they do not
    /// run.
    pub fn mend(&mut self) {
        let _ = self.ready();
    }

    /// Returns when all processes run. After a fault they start again, and the engine is read from
    /// the store and the journal.
    ///
    /// # Errors
    /// If they do not run, or nothing more is taken for another reason.
    pub(super) fn ready(&mut self) -> Result<(), Refusal> {
        self.check()?;
        let mut others = self.others.lock();
        others.notice_ended();
        if others.fault().is_none() {
            return Ok(());
        }
        others.restart();
        if let Some(fault) = others.fault() {
            return Err(Refusal::unable(fault));
        }
        drop(others);
        self.begin_as_read(self.restarts + 1)
    }

    /// Goes on with what the store and the journal have, after so many restarts of other processes.
    ///
    /// # Errors
    /// If they cannot be read, or another process is gone.
    pub(super) fn begin_as_read(&mut self, restarts: u64) -> Result<(), Refusal> {
        match self.read_again() {
            Ok(service) => {
                let commits = self.commits;
                let since = service.pending.since.and(self.pending.since.or(service.pending.since));
                let pending = Pending { since, ..service.pending };
                *self = Service { commits, restarts, pending, ..service };
                Ok(())
            }
            Err(error) => Err(self.unable(error)),
        }
    }

    /// Reads the store and the journal. Changes go on where they ended: those that were said keep
    /// their numbers.
    fn read_again(&mut self) -> Result<Service> {
        let documents = self.engine.documents();
        // Where a commit has changed the tables, clusters may have other ids in them.
        let is_renamed = self.tables_changed && self.engine_state == EngineState::Whole;
        if !is_renamed && self.engine_state != EngineState::ChangesOnly {
            // The new engine needs the memory of the old one.
            let mut changes = Engine::new(&self.engine.method().clone(), 1)?;
            if self.tables_changed {
                // Renames are not known: who asks for changes has to read the clusters again.
                changes.go_on_from(self.engine.given_with_renames());
            } else {
                changes.take_changes(&mut self.engine);
            }
            self.engine = changes;
            self.engine_state = EngineState::ChangesOnly;
        }
        let (mut service, _) = Service::read(&self.store, Some(documents), self.workers, self.limits, &self.others)?;
        let of_journal = service.engine.given();
        if is_renamed {
            service.engine.continue_from(&mut self.engine);
        } else {
            service.engine.take_changes(&mut self.engine);
        }
        if service.engine.given() != of_journal {
            // So that a process that starts goes on with these numbers.
            service.note(Some(service.engine.given()))?;
        }
        Ok(service)
    }

    /// The refusal for an error of the engine. If it is not a process that is gone, nothing more is
    /// taken.
    pub(super) fn unable(&mut self, error: anyhow::Error) -> Refusal {
        if let Some(fault) = self.fault() {
            return Refusal::unable(fault);
        }
        let text = format!("{error:#}");
        self.broken = Some(text.clone());
        Refusal::unable(text)
    }

    /// Takes a batch out of the journal, which began at this place, because of a process that is
    /// gone. The engine is read again without it.
    pub(super) fn take_back(&mut self, before: u64, error: anyhow::Error) -> Refusal {
        self.engine_state = EngineState::InPart;
        match self.journal.cut_to(before) {
            Ok(()) => Refusal::unable(format!("{error:#}; the batch is not taken")),
            Err(failed) => {
                let text =
                    format!("{error:#}; the batch cannot be taken out of the journal: {failed:#}: start nigh again");
                self.broken = Some(text.clone());
                Refusal::unable(text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::batch::Limits;
    use crate::live::engine::KeyProcesses;
    use crate::live::service::Lines;
    use crate::live::service::tests::{ready, text};
    use crate::records::DocumentKey;
    use crate::state::Store;

    /// A service with another process, which is a thread.
    fn open(store: &Store) -> Service {
        let others = KeyProcesses::threads(1);
        Service::open_with(store, Some(DocumentKey::Id), 1, Limits::default(), others).unwrap().0
    }

    /// What changes say after a number, or the status of the refusal.
    fn changes(service: &mut Service, since: u64) -> Result<String, u16> {
        let lines: Result<Lines, _> = service.changes(since, 100);
        lines.map(|lines| text(Ok(lines))).map_err(|refusal| refusal.status)
    }

    #[test]
    fn a_fault_between_a_commit_and_the_reading_of_its_tables_renames() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let mut service = open(&store);
        text(service.add(None, (ready(1) + &ready(2)).as_bytes()));
        let before = changes(&mut service, 0).unwrap();
        service.others.lock().end(1);
        service.commit(&mut |_| anyhow::bail!("no table can have these documents")).unwrap();
        assert_eq!(service.restarts(), 1);
        let renamed =
            "{\"number\":2,\"event\":\"rename\",\"cluster\":-1,\"into\":-2,\"before\":2,\"after\":2,\"documents\":2}\n";
        assert_eq!(changes(&mut service, 0).unwrap(), before + renamed);
        assert!(text(service.cluster(-2, 9)).contains("\"size\":2"));
        text(service.add(None, ready(3).as_bytes()));
        let grown = changes(&mut service, 2).unwrap();
        assert!(grown.starts_with("{\"number\":3,\"event\":\"grow\",\"cluster\":-2"), "{grown}");
        drop(service);
        assert_eq!(changes(&mut open(&store), 2).unwrap(), grown);
    }

    #[test]
    fn a_fault_within_a_batch_after_a_commit_that_changed_tables_drops_changes() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let mut service = open(&store);
        text(service.add(None, (ready(1) + &ready(2)).as_bytes()));
        // As after a commit whose first command succeeded, and whose second one failed.
        service.tables_changed = true;
        service.others.lock().end(1);
        let refusal = service.add(None, ready(3).as_bytes()).unwrap_err();
        assert!(refusal.status == 503 && refusal.text.contains("the batch is not taken"), "{refusal}");
        // A client cannot know which clusters were renamed.
        assert_eq!([0, 1].map(|since| changes(&mut service, since)), [Err(410), Err(410)]);
        assert_eq!(service.restarts(), 1);
        assert_eq!(changes(&mut service, 2), Ok(String::new()));
        text(service.add(None, ready(3).as_bytes()));
        let grown = changes(&mut service, 2).unwrap();
        assert!(grown.starts_with("{\"number\":3,\"event\":\"grow\""), "{grown}");
        // The next process goes on with these numbers.
        drop(service);
        let mut service = open(&store);
        assert_eq!((changes(&mut service, 1), changes(&mut service, 2)), (Err(410), Ok(grown)));
    }
}

//! For tests: a bucket in memory whose service fails on request.

use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::Bucket;

/// What is wrong with the service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Puts are done at once, but respond after this time.
    SlowPuts(Duration),
    /// Puts are done, but no request gets a response.
    LostAnswers,
    /// Nothing is done, and no request gets a response.
    Silent,
    /// Conditions of puts are ignored.
    NoConditions,
}

/// The fault that the service has now; the test sets it.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Fault>>);

impl Faults {
    /// Sets the fault of all calls from now on.
    ///
    /// # Panics
    /// If a thread panicked while it did so.
    pub fn set(&self, fault: Fault) {
        *self.0.lock().unwrap() = fault;
    }

    fn now(&self) -> Fault {
        *self.0.lock().unwrap()
    }
}

/// A bucket whose small requests time out after `patience`, and the handle that sets its fault.
pub fn faulty(patience: Duration) -> (Bucket, Faults) {
    let faults = Faults::default();
    (Bucket::over(Arc::new(Faulty { inner: InMemory::new(), faults: faults.clone() }), patience), faults)
}

#[derive(Debug)]
struct Faulty {
    inner: InMemory,
    faults: Faults,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

/// The trait's asynchronous methods, written as its macro expands them.
impl ObjectStore for Faulty {
    fn put_opts<'life0, 'life1, 'async_trait>(
        &'life0 self,
        location: &'life1 Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> BoxFuture<'async_trait, Result<PutResult>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let fault = self.faults.now();
            match fault {
                Fault::Silent => return pending().await,
                Fault::NoConditions => options.mode = PutMode::Overwrite,
                _ => {}
            }
            let done = self.inner.put_opts(location, payload, options).await;
            match fault {
                Fault::SlowPuts(time) => tokio::time::sleep(time).await,
                Fault::LostAnswers => return pending().await,
                _ => {}
            }
            done
        })
    }

    fn put_multipart_opts<'life0, 'life1, 'async_trait>(
        &'life0 self,
        location: &'life1 Path,
        options: PutMultipartOptions,
    ) -> BoxFuture<'async_trait, Result<Box<dyn MultipartUpload>>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        self.inner.put_multipart_opts(location, options)
    }

    fn get_opts<'life0, 'life1, 'async_trait>(
        &'life0 self,
        location: &'life1 Path,
        options: GetOptions,
    ) -> BoxFuture<'async_trait, Result<GetResult>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            match self.faults.now() {
                Fault::Silent | Fault::LostAnswers => pending().await,
                _ => self.inner.get_opts(location, options).await,
            }
        })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.faults.now() {
            Fault::Silent | Fault::LostAnswers => Box::pin(futures_util::stream::pending()),
            _ => self.inner.delete_stream(locations),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_delimiter<'life0, 'life1, 'async_trait>(
        &'life0 self,
        prefix: Option<&'life1 Path>,
    ) -> BoxFuture<'async_trait, Result<ListResult>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        self.inner.list_with_delimiter(prefix)
    }

    fn copy_opts<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        from: &'life1 Path,
        to: &'life2 Path,
        options: CopyOptions,
    ) -> BoxFuture<'async_trait, Result<()>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        self.inner.copy_opts(from, to, options)
    }
}

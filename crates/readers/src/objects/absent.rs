//! The bucket of a program built without the feature `cloud`: a type without values, because
//! opening it fails.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Read;
use std::path::Path;

use anyhow::{Result, bail};

use super::{CREDENTIALS_VARIABLE, Digest, PutCondition, PutOutcome};

/// A folder of a bucket; no value of this type exists.
#[derive(Clone, Debug)]
pub struct Bucket(Infallible);

/// An error of a service; no value of this type exists.
#[derive(Debug)]
pub struct ServiceError(Infallible);

impl ServiceError {
    /// The causes.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
        std::iter::empty()
    }
}

impl std::fmt::Display for ServiceError {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {}
    }
}

impl std::error::Error for ServiceError {}

/// Does nothing: there are no clients.
pub fn use_machine_credentials() {}

/// The variable with the value by default: there are no clients.
pub fn credentials_variable() -> (&'static str, &'static str) {
    (CREDENTIALS_VARIABLE, "environment")
}

/// A version of an object; no value of this type exists.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectVersion(Infallible);

#[allow(missing_docs, clippy::missing_errors_doc, reason = "no value of this type exists: see `bucket`")]
impl Bucket {
    /// Always fails.
    ///
    /// # Errors
    /// Always: this program is built without object stores.
    pub fn open(url: &str) -> Result<Bucket> {
        bail!("cannot use the store {url}: this nigh is built without the feature `cloud`")
    }

    pub fn url(&self, _: &str) -> String {
        match self.0 {}
    }

    pub fn get(&self, _: &str) -> Result<Option<(Vec<u8>, ObjectVersion)>> {
        match self.0 {}
    }

    pub fn get_whole(&self, _: &str) -> Result<Option<Vec<u8>>> {
        match self.0 {}
    }

    pub fn put_if(&self, _: &str, _: &[u8], _: &PutCondition) -> Result<PutOutcome> {
        match self.0 {}
    }

    pub fn check_conditions(&self, _: &str, _: &[u8]) -> Result<()> {
        match self.0 {}
    }

    pub fn list(&self) -> Result<BTreeMap<String, u64>> {
        match self.0 {}
    }

    pub fn size(&self, _: &str) -> Result<Option<u64>> {
        match self.0 {}
    }

    pub fn read(&self, _: &str, _: u64) -> Result<Box<dyn Read>> {
        match self.0 {}
    }

    pub fn upload(&self, _: &str, _: &Path, _: u64, _: Digest) -> Result<()> {
        match self.0 {}
    }

    pub fn put(&self, _: &str, _: Vec<u8>) -> Result<()> {
        match self.0 {}
    }

    pub fn remove(&self, _: &str) -> Result<()> {
        match self.0 {}
    }
}

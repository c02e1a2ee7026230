//! The items of records that have no page.

use super::http::NoPage;
use super::record::RecordHead;
use crate::readers::item::{Failure, Item, Reject, Skipped};

/// Makes the item of a record that is intact and without a page, or malformed.
pub(super) fn without_page(record: RecordHead, why: NoPage) -> Item {
    let (status, redirect) = match why {
        NoPage::Skip(why) => return Item::Skip(Skipped { offset: record.offset, why }),
        NoPage::Broken(reason) => {
            return Item::Reject(Reject { offset: record.offset, url: record.url, reason: reason.to_owned() });
        }
        NoPage::Status(status) => (status, None),
        NoPage::Redirect(redirect) => (redirect.status, Some(redirect)),
    };
    match record.url {
        Some(url) => Item::Failed(Failure { url, reason: format!("status {status}"), offset: record.offset, redirect }),
        None => without_url(record.offset),
    }
}

/// The reject of a record that must have a URL.
pub(super) fn without_url(offset: u64) -> Item {
    Item::Reject(Reject { offset, url: None, reason: "warc: no WARC-Target-URI".to_owned() })
}

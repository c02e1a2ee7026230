//! By which method a response was asked for, as the `request` records of a WARC file say.
//!
//! What answers POST is another thing than the page of the URL, which GET asks for, and what
//! answers HEAD has no content. A request belongs to the response
//!
//! 1. that it names by WARC-Concurrent-To, or that names it so;
//! 2. else, if neither names a record, to the one of its URL directly before or after it. Records
//!    of other types between them do not count.
//!
//! A request before its response is remembered for the next 256 KiB of the file, so that a piece of
//! a file is read as the whole is. One after its response finds it only while the reader holds it
//! back ([`held`](super::held)). Of requests by GET those that name a response are kept until it
//! comes, of the others none but the last.

use std::collections::VecDeque;

use super::record::{CONCURRENT, RecordHead, hash};

/// The stored bytes for which a request is remembered.
pub const REACH: u64 = 256 << 10;
/// The most requests that are remembered. Many can be in one compressed member.
const REMEMBERED: usize = 4096;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestMethod {
    /// GET.
    Get,
    /// HEAD: its answer has no content.
    Head,
    /// Another one: POST.
    Other,
}

impl RequestMethod {
    /// The method of the request in a block; GET if it has none.
    pub fn of(block: &[u8]) -> RequestMethod {
        let name = block.iter().take(16).take_while(|byte| byte.is_ascii_alphabetic()).count();
        match &block[..name] {
            name if name.len() < 3 || block.get(name.len()) != Some(&b' ') => RequestMethod::Get,
            name if name.eq_ignore_ascii_case(b"get") => RequestMethod::Get,
            name if name.eq_ignore_ascii_case(b"head") => RequestMethod::Head,
            _ => RequestMethod::Other,
        }
    }
}

/// What a request and its response know each other by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ties {
    /// The hash of its id; 0 if it has none.
    id: u64,
    /// The hash of its URL; 0 if it has none.
    url: u64,
    concurrent_to: [u64; CONCURRENT],
}

impl Ties {
    /// Those of a record.
    pub fn of(record: &RecordHead) -> Ties {
        let hash_of = |text: &Option<String>| text.as_deref().map_or(0, hash);
        Ties { id: hash_of(&record.entry.id), url: hash_of(&record.url), concurrent_to: record.concurrent_to }
    }

    /// Whether one of the two names the other.
    pub fn name(&self, other: &Ties) -> bool {
        let names = |one: &Ties, other: &Ties| other.id != 0 && one.concurrent_to.contains(&other.id);
        names(self, other) || names(other, self)
    }

    /// Whether this is a request for the URL of a response, and neither names a record.
    fn asks_for(&self, response: &Ties) -> bool {
        !self.names_a_record() && !response.names_a_record() && self.url != 0 && self.url == response.url
    }

    fn names_a_record(&self) -> bool {
        self.concurrent_to != [0; CONCURRENT]
    }
}

/// What the requests so far say.
#[derive(Default)]
pub struct Methods {
    /// The places of requests that may belong to a later response: those by other methods than GET,
    /// and those that name one.
    requests: VecDeque<(u64, Ties, RequestMethod)>,
    /// The last request or response, unless what belongs to it is known, with its place.
    last: Option<(u64, Ties, LastRecord)>,
}

/// The last record.
#[derive(Clone, Copy)]
enum LastRecord {
    Request(RequestMethod),
    Response,
}

impl Methods {
    /// Takes the response at a place. Returns the method of its request, if that came before.
    pub fn response(&mut self, offset: u64, response: &Ties) -> Option<RequestMethod> {
        let is_far = |place: u64| offset.saturating_sub(place) > REACH;
        while self.requests.front().is_some_and(|(place, ..)| is_far(*place)) {
            self.requests.pop_front();
        }
        let named = self.requests.iter().position(|(_, request, _)| request.name(response));
        let method = match (named, self.last) {
            // Several records may name one request; of GET it makes no difference.
            (Some(number), _) if self.requests[number].2 != RequestMethod::Get => Some(self.requests[number].2),
            (Some(number), _) => self.requests.remove(number).map(|(.., method)| method),
            (None, Some((place, request, LastRecord::Request(method))))
                if !is_far(place) && (request.name(response) || request.asks_for(response)) =>
            {
                if self.requests.back().is_some_and(|(_, last, _)| *last == request) {
                    self.requests.pop_back();
                }
                Some(method)
            }
            _ => None,
        };
        self.last = method.is_none().then_some((offset, *response, LastRecord::Response));
        method
    }

    /// Takes the request at a place, after `named`: whether a response that is held back is tied to
    /// it. Returns the response directly before that it belongs to by its URL.
    pub fn request(&mut self, offset: u64, request: Ties, method: RequestMethod, named: bool) -> Option<Ties> {
        let before = match self.last.take() {
            Some((place, response, LastRecord::Response))
                if !named && offset.saturating_sub(place) <= REACH && request.asks_for(&response) =>
            {
                Some(response)
            }
            _ => None,
        };
        if named || before.is_some() {
            return before;
        }
        self.last = Some((offset, request, LastRecord::Request(method)));
        if method != RequestMethod::Get || request.names_a_record() {
            self.requests.push_back((offset, request, method));
            if self.requests.len() > REMEMBERED {
                self.requests.pop_front();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_the_first_words_of_requests() {
        for (block, method) in [
            ("GET / HTTP/1.1", RequestMethod::Get),
            ("get / HTTP/1.1", RequestMethod::Get),
            ("POST / HTTP/1.1", RequestMethod::Other),
            ("HEAD / HTTP/1.1", RequestMethod::Head),
            ("head / HTTP/1.1", RequestMethod::Head),
            ("HEADER / HTTP/1.1", RequestMethod::Other),
            ("OPTIONS * HTTP/1.1", RequestMethod::Other),
            ("PROPFIND / HTTP/1.1", RequestMethod::Other),
            ("", RequestMethod::Get),
            ("; <<>> DiG", RequestMethod::Get),
            ("GET", RequestMethod::Get),
        ] {
            assert_eq!(RequestMethod::of(block.as_bytes()), method, "{block}");
        }
    }

    #[test]
    fn names_say_more_than_neighbours() {
        use RequestMethod::{Get, Head, Other};
        let ties = |id: u64, names: u64| {
            let mut concurrent_to = [0; CONCURRENT];
            concurrent_to[0] = names;
            Ties { id, url: 7, concurrent_to }
        };
        /// A request with its method, or a response with the method that is found; ids and names.
        type Record = (Option<RequestMethod>, Option<Option<RequestMethod>>, [u64; 2]);
        let cases: [&[Record]; 5] = [
            // Responses name their requests.
            &[
                (Some(Get), None, [1, 0]),
                (Some(Head), None, [2, 0]),
                (None, Some(None), [3, 1]),
                (None, Some(Some(Head)), [4, 2]),
            ],
            // One request names its response, the other is named.
            &[
                (Some(Get), None, [1, 3]),
                (Some(Head), None, [2, 0]),
                (None, Some(Some(Get)), [3, 0]),
                (None, Some(Some(Head)), [4, 2]),
            ],
            // Behind the request of another response.
            &[(Some(Get), None, [1, 0]), (None, Some(None), [4, 2]), (Some(Head), None, [2, 0])],
            // Neighbours, of which none names a record.
            &[(Some(Other), None, [1, 0]), (None, Some(Some(Other)), [3, 0]), (None, Some(None), [4, 0])],
            // A request that several name.
            &[
                (Some(Other), None, [1, 3]),
                (None, Some(Some(Other)), [3, 0]),
                (None, Some(Some(Other)), [5, 1]),
                (None, Some(None), [6, 0]),
            ],
        ];
        for records in cases {
            let mut methods = Methods::default();
            for (place, (request, response, [id, names])) in (0..).zip(records) {
                match (request, response) {
                    (Some(method), _) => drop(methods.request(place, ties(*id, *names), *method, false)),
                    (_, found) => assert_eq!(Some(methods.response(place, &ties(*id, *names))), *found, "{records:?}"),
                }
            }
        }
    }
}

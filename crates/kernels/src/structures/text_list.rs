//! Many short texts in one buffer: a list of strings without an allocation for each.

/// Texts one after another.
///
/// ```
/// use nigh_kernels::structures::TextList;
///
/// let mut list: TextList = ["one", "", "three"].into_iter().collect();
/// list.push("four");
/// assert_eq!((list.len(), list.bytes()), (4, 12));
/// assert_eq!((list.get(0), list.get(3), list.get(4)), (Some("one"), Some("four"), None));
/// assert_eq!(list, ["one", "", "three", "four"]);
/// ```
///
/// Limit: 4 GiB of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextList {
    text: String,
    /// Where each text ends in `text`.
    ends: Vec<u32>,
}

impl TextList {
    /// An empty list with room for `texts` texts of `bytes` bytes together.
    pub fn with_capacity(texts: usize, bytes: usize) -> TextList {
        TextList { text: String::with_capacity(bytes), ends: Vec::with_capacity(texts) }
    }

    /// Adds a text.
    ///
    /// # Panics
    /// If the texts together have 4 GiB or more.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(u32::try_from(self.text.len()).expect("a list of texts has less than 4 GiB"));
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The bytes that the list takes on the heap, about.
    pub fn weight(&self) -> usize {
        self.text.len() + size_of_val(&self.ends[..])
    }

    /// The text with this number.
    pub fn get(&self, number: usize) -> Option<&str> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start as usize..end as usize)
    }

    /// The texts, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|number| self.get(number).unwrap_or_default())
    }

    /// Gives back the memory that holds no text.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

impl<T: AsRef<str>> FromIterator<T> for TextList {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> TextList {
        let mut list = TextList::default();
        texts.into_iter().for_each(|text| list.push(text.as_ref()));
        list
    }
}

impl<T: AsRef<str>, const N: usize> PartialEq<[T; N]> for TextList {
    fn eq(&self, others: &[T; N]) -> bool {
        self.iter().eq(others.iter().map(T::as_ref))
    }
}

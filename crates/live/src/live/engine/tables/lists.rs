//! Lists of numbers, of which most have one number: such a list takes four bytes.

/// A number stands for itself, or with this bit for a list of several.
const SEVERAL: u32 = 1 << 31;
/// A list without numbers.
const EMPTY: u32 = u32::MAX;

/// Lists of numbers below 2^31, by their own number.
#[derive(Default)]
pub(in crate::live::engine) struct ShortLists {
    /// The only number of each list, or the place of its numbers among `several`.
    of: Vec<u32>,
    several: Vec<Vec<u32>>,
    free: Vec<u32>,
}

impl ShortLists {
    /// How many lists there are.
    pub(in crate::live::engine) fn len(&self) -> usize {
        self.of.len()
    }

    /// Makes lists without numbers, so that there are at least `count`.
    pub(in crate::live::engine) fn grow(&mut self, count: usize) {
        if self.of.len() < count {
            self.of.resize(count, EMPTY);
        }
    }

    /// The numbers of a list; none of one that was not made.
    pub(in crate::live::engine) fn get(&self, list: u32) -> &[u32] {
        match self.of.get(list as usize) {
            None | Some(&EMPTY) => &[],
            Some(number) if number & SEVERAL == 0 => std::slice::from_ref(number),
            Some(place) => &self.several[(place & !SEVERAL) as usize],
        }
    }

    /// Adds a number at the end of a list, and returns its place there.
    pub(in crate::live::engine) fn push(&mut self, list: u32, number: u32) -> u32 {
        assert!(number < SEVERAL, "two billion numbers");
        match self.of[list as usize] {
            EMPTY => {
                self.of[list as usize] = number;
                0
            }
            only if only & SEVERAL == 0 => {
                let place = self.free.pop().unwrap_or(self.several.len() as u32);
                if place as usize == self.several.len() {
                    self.several.push(Vec::new());
                }
                self.several[place as usize] = vec![only, number];
                self.of[list as usize] = SEVERAL | place;
                1
            }
            place => {
                let numbers = &mut self.several[(place & !SEVERAL) as usize];
                numbers.push(number);
                numbers.len() as u32 - 1
            }
        }
    }

    /// Takes the number at a place out of a list. The last one takes its place, and is returned.
    pub(in crate::live::engine) fn swap_remove(&mut self, list: u32, place: u32) -> Option<u32> {
        let of = self.of[list as usize];
        if of & SEVERAL == 0 {
            assert!(place == 0, "a list of one number has no other place");
            self.of[list as usize] = EMPTY;
            return None;
        }
        let numbers = &mut self.several[(of & !SEVERAL) as usize];
        numbers.swap_remove(place as usize);
        let moved = numbers.get(place as usize).copied();
        if let [only] = numbers[..] {
            *numbers = Vec::new();
            self.free.push(of & !SEVERAL);
            self.of[list as usize] = only;
        }
        moved
    }

    /// Takes all numbers out of a list.
    pub(in crate::live::engine) fn take(&mut self, list: u32) -> Vec<u32> {
        match std::mem::replace(&mut self.of[list as usize], EMPTY) {
            EMPTY => Vec::new(),
            only if only & SEVERAL == 0 => vec![only],
            place => {
                self.free.push(place & !SEVERAL);
                std::mem::take(&mut self.several[(place & !SEVERAL) as usize])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn lists_are_those_of_vectors() {
        let (mut lists, mut twin) = (ShortLists::default(), vec![Vec::new(); 7]);
        assert!(lists.get(3).is_empty());
        lists.grow(7);
        assert_eq!(lists.len(), 7);
        for step in 0..5000u64 {
            let (list, random) = ((mix(step) % 7) as u32, mix(step ^ 1 << 40));
            let of = &mut twin[list as usize];
            match random % 16 {
                0 => assert_eq!(lists.take(list), std::mem::take(of)),
                1..8 if !of.is_empty() => {
                    let place = (random >> 8) as usize % of.len();
                    of.swap_remove(place);
                    assert_eq!(lists.swap_remove(list, place as u32), of.get(place).copied());
                }
                _ => {
                    of.push((random >> 33) as u32);
                    assert_eq!(lists.push(list, (random >> 33) as u32) as usize, of.len() - 1);
                }
            }
            assert!((0..7).all(|list| lists.get(list) == twin[list as usize]), "step {step}");
        }
        assert!(lists.several.len() <= 7, "freed places are used again");
    }
}

//! Where in a body the parser stands, kept on the stack and written out only when something is wrong.
//!
//! Takes names and positions on the way down; gives `filter.$or[2].age.$in`. Costs nothing while all is well.

use std::fmt;

/// A place in a body. Each level of a parser makes the next from its own.
#[derive(Clone, Copy)]
pub struct Place<'p> {
    parent: Option<&'p Place<'p>>,
    part: Part<'p>,
}

#[derive(Clone, Copy)]
enum Part<'p> {
    Name(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    /// The top: the name of the body's field, such as `filter`.
    #[must_use]
    pub const fn root(name: &'p str) -> Self {
        Self { parent: None, part: Part::Name(name) }
    }

    /// The field `name` below this.
    #[must_use]
    pub const fn name<'q>(&'q self, name: &'q str) -> Place<'q> {
        Place { parent: Some(self), part: Part::Name(name) }
    }

    /// The element `index` below this.
    #[must_use]
    pub const fn index(&self, index: usize) -> Place<'_> {
        Place { parent: Some(self), part: Part::Index(index) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // From the inside out without recursion: the parts are collected, then written from the top.
        let mut parts = Vec::new();
        let mut here = Some(self);
        while let Some(place) = here {
            parts.push(place.part);
            here = place.parent;
        }
        for (i, part) in parts.iter().rev().enumerate() {
            match part {
                Part::Name(name) if i == 0 => f.write_str(name)?,
                Part::Name(name) => write!(f, ".{name}")?,
                Part::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_from_the_top_down() {
        let root = Place::root("filter");
        let or = root.name("$or");
        let second = or.index(2);
        let age = second.name("age");
        assert_eq!(age.name("$in").to_string(), "filter.$or[2].age.$in");
    }
}

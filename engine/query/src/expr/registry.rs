//! The operators that only look at their evaluated arguments: name, shape of the arguments, function.
//!
//! Each family's file lists its own; this file finds them by name. Next: the families, `arithmetic.rs` first.

use super::datum::Datum;
use super::scope::Scope;
use super::{
    arithmetic, array, bits, calendar_ops, compare, convert, date_format, date_math, hashed, object, set, size,
    statistics, string, trig,
};
use crate::QueryError;
use std::collections::HashMap;
use std::sync::LazyLock;

/// One operator.
pub(super) struct Operator {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) run: Run,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What an operator makes of its arguments.
pub(super) type Run = for<'s, 'a> fn(&mut Arguments<'s, 'a>) -> Result<Datum<'a>, QueryError>;

/// How an operator takes its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// From so many to so many, in an array; one alone may stand without the array.
    Positional(usize, usize),
    /// By name, in an object: those that must be there, then those that may.
    Named(&'static [&'static str], &'static [&'static str]),
    /// By name, or one alone that stands for the first.
    NamedOrFirst(&'static [&'static str], &'static [&'static str]),
}

/// Any number of arguments.
pub(super) const ANY: Shape = Shape::Positional(0, usize::MAX);
/// One argument.
pub(super) const ONE: Shape = Shape::Positional(1, 1);
/// Two arguments.
pub(super) const TWO: Shape = Shape::Positional(2, 2);
/// Three arguments.
pub(super) const THREE: Shape = Shape::Positional(3, 3);

/// The evaluated arguments of a call.
pub(super) struct Arguments<'s, 'a> {
    pub(super) scope: &'s mut Scope<'a>,
    pub(super) name: &'static str,
    pub(super) base: usize,
    /// Bit `i` is set where argument `i` was given.
    pub(super) given: u32,
}

impl<'a> Arguments<'_, 'a> {
    /// The number of arguments.
    pub(super) fn len(&self) -> usize {
        self.scope.arguments.len() - self.base
    }

    /// Whether the argument was given at all.
    pub(super) fn has(&self, i: usize) -> bool {
        self.given & 1 << i != 0
    }

    /// The argument, missing where it was not given.
    #[inline]
    pub(super) fn get(&self, i: usize) -> &Datum<'a> {
        const MISSING: &Datum<'static> = &Datum::Missing;
        self.scope.arguments.get(self.base + i).unwrap_or(MISSING)
    }

    /// The argument, taken out.
    #[inline]
    pub(super) fn take(&mut self, i: usize) -> Datum<'a> {
        self.scope.arguments.get_mut(self.base + i).map_or(Datum::Missing, |d| std::mem::replace(d, Datum::Missing))
    }

    /// All arguments.
    pub(super) fn all(&self) -> &[Datum<'a>] {
        &self.scope.arguments[self.base..]
    }

    /// All arguments, taken out.
    pub(super) fn take_all(&mut self) -> Vec<Datum<'a>> {
        self.scope.arguments.split_off(self.base)
    }

    /// Whether one of the arguments is null or missing.
    pub(super) fn any_nullish(&self) -> bool {
        self.all().iter().any(Datum::is_nullish)
    }

    /// A made string.
    pub(super) fn text(&mut self, s: impl Into<std::rc::Rc<str>>) -> Result<Datum<'a>, QueryError> {
        Datum::text(s, self.scope)
    }

    /// A made array.
    pub(super) fn array(&mut self, items: Vec<Datum<'a>>) -> Result<Datum<'a>, QueryError> {
        Datum::array(items, self.scope)
    }
}

static BY_NAME: LazyLock<HashMap<&'static str, &'static Operator>> = LazyLock::new(|| {
    let families: [&'static [Operator]; 15] = [
        arithmetic::OPERATORS,
        array::OPERATORS,
        bits::OPERATORS,
        calendar_ops::OPERATORS,
        compare::OPERATORS,
        convert::OPERATORS,
        date_format::OPERATORS,
        date_math::OPERATORS,
        hashed::OPERATORS,
        object::OPERATORS,
        set::OPERATORS,
        size::OPERATORS,
        statistics::OPERATORS,
        string::OPERATORS,
        trig::OPERATORS,
    ];
    families.into_iter().flatten().map(|o| (o.name, o)).collect()
});

/// The operator of that name.
pub(super) fn find(name: &str) -> Option<&'static Operator> {
    BY_NAME.get(name).copied()
}

/// Every name in the registry.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BY_NAME.keys().copied()
}

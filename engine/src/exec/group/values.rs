//! Codes of what a group takes of each row: the value at a path, or what an expression makes of it.

use std::ops::Range;

use quarrydb_index::column::WINDOW_ROWS;
use quarrydb_jsonb::{Builder, JsonbRef};
use quarrydb_query::expr::Expression;

use super::codes::{Codes, MISSING};
use super::derived::Derived;
use super::extremes::at_rows;
use super::scalar::Scalar;
use super::spec::Input;
use super::trouble::Read;
use crate::exec::plain::Plain;

/// Codes of an input in one run of columns.
#[derive(Debug)]
pub(super) enum Values<'a> {
    Stored(Codes<'a>),
    Derived(Derived<'a>),
}

impl<'a> Values<'a> {
    /// The codes of an input; none where columns do not have its values.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn new(
        input: &'a Input,
        expression: &'a Expression,
        plain: &Plain<'a>,
        windows: Range<usize>,
    ) -> quarrydb_index::Result<Option<Self>> {
        Ok(if input.is_path {
            Codes::new(plain, windows)?.map(Self::Stored)
        } else {
            Derived::new(expression, &input.path, plain, windows)?.map(Self::Derived)
        })
    }

    /// Gives equal numbers of different types one code.
    pub(super) fn joining_equal(self) -> Self {
        match self {
            Self::Stored(codes) => Self::Stored(codes.joining_equal()),
            derived @ Self::Derived(_) => derived,
        }
    }

    /// A number above all codes, where there is a small one.
    pub(super) fn bound(&self) -> Option<u32> {
        match self {
            Self::Stored(codes) => codes.bound(),
            Self::Derived(_) => None,
        }
    }

    /// The codes of the picked rows of window `index`, by their place in the window.
    ///
    /// # Errors
    /// `Corrupt` of the index, those of the expression.
    pub(super) fn window(&mut self, index: usize, picks: &[u16], out: &mut [u32; WINDOW_ROWS]) -> Read<()> {
        match self {
            Self::Stored(codes) => Ok(codes.window(index, picks, out)?),
            Self::Derived(derived) => derived.window(index, picks, out),
        }
    }

    /// Appends the value of a code; false, with nothing appended, for what is missing.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn write(&self, code: u32, buffer: &mut Vec<u8>, out: &mut Builder) -> Read<bool> {
        match self {
            _ if code == MISSING => Ok(false),
            Self::Stored(codes) => Ok(codes.write(code, buffer, out)?),
            Self::Derived(derived) => {
                let value = derived.value(code);
                value.into_iter().for_each(|value| out.copy(value));
                Ok(value.is_some())
            }
        }
    }

    /// The values of rows, where a code does not tell which of equal values it is.
    ///
    /// # Errors
    /// `Corrupt` of the index, those of the expression.
    pub(super) fn at_rows(&self, plain: &Plain<'_>, rows: &[u32]) -> Read<Option<Vec<Scalar>>> {
        match self {
            Self::Stored(codes) if codes.is_joined() => Ok(at_rows(plain, rows)?),
            Self::Derived(derived) if derived.is_joined() => {
                let Some(stored) = at_rows(plain, rows)? else { return Ok(None) };
                let mut builder = Builder::new();
                let made = stored.iter().map(|value| {
                    builder.rewind(0);
                    let there = value.write(&mut builder);
                    let value = derived.of_value(there.then(|| JsonbRef::from_valid(builder.bytes())))?;
                    Ok(value.map_or(Scalar::Missing, |value| Scalar::Other(Box::new(value))))
                });
                made.collect::<Read<_>>().map(Some)
            }
            _ => Ok(None),
        }
    }
}

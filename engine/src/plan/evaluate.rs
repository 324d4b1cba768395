//! The tree: from tests on columns to the rows of a filter. Recursion is bounded by the nesting of the filter.

use super::answer::{Answer, Rows};
use super::leaf;
use super::prepare::{Ask, Prepared, Step};
use crate::columns::Source;
use crate::error::Result;
use crate::options::Deadline;

impl Prepared {
    /// The rows that match for sure, and those that may, among the rows of columns.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `TimedOut`.
    pub(crate) fn rows(&self, source: Source<'_>, deadline: Option<Deadline>) -> Result<Answer> {
        step(&self.root, source, deadline)
    }
}

fn step(node: &Step, source: Source<'_>, deadline: Option<Deadline>) -> Result<Answer> {
    let rows = source.rows();
    match node {
        Step::All(steps) => {
            let mut all = Answer::exact(Rows::All);
            for each in steps {
                all = all.and(step(each, source, deadline)?);
                if all.possible.is_none() {
                    break;
                }
            }
            Ok(all)
        }
        Step::Any(steps) => {
            let mut any = Answer::exact(Rows::None);
            for each in steps {
                any = any.or(step(each, source, deadline)?);
                if any.sure == Rows::All {
                    break;
                }
            }
            Ok(any)
        }
        Step::Not(inner) => Ok(step(inner, source, deadline)?.not(rows)),
        Step::Constant(value) => Ok(Answer::exact(if *value { Rows::All } else { Rows::None })),
        Step::Unknown => Ok(Answer::unknown()),
        Step::Span { between, ends } => {
            Deadline::check(deadline)?;
            if leaf::is_single(between, source)? {
                return leaf::answer(between, source);
            }
            let [first, second] = &**ends;
            Ok(step(first, source, deadline)?.and(step(second, source, deadline)?))
        }
        Step::Field(field) => {
            Deadline::check(deadline)?;
            let mut answer = leaf::answer(field, source)?;
            if let Ask::Elements(conditions) = &field.ask {
                for condition in conditions {
                    if answer.possible.is_none() {
                        break;
                    }
                    // An array on the way of a position is not judged by its elements here.
                    if !field.numeric {
                        let of_elements = step(condition, source, deadline)?;
                        answer.possible = answer.possible.and(of_elements.possible);
                    }
                }
            }
            Ok(answer)
        }
    }
}

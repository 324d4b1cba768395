//! Projections: which parts of a document a query wants.
//!
//! Takes the object of a body, gives a [`Projection`] that writes a document's wanted parts. Next: `parse.rs`, `tree.rs`,
//! `apply.rs`.

mod apply;
mod parse;
mod tree;

use crate::expr::Budget;
use crate::filter::{Filter, Node};
use crate::meter::Meter;
use crate::{ParseContext, Place, QueryError};
use quarrydb_jsonb::{Builder, JsonbRef};
use std::sync::Arc;
use tree::{Part, Tree};

/// Whether a projection names what stays or what goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What is named stays.
    Inclusion,
    /// What is named goes.
    Exclusion,
}

/// A parsed projection.
#[derive(Clone, Debug)]
pub struct Projection {
    mode: Mode,
    root: Tree,
    /// The filter whose matches the positional operator means.
    filter: Option<Arc<Filter>>,
    /// Where the positional operator stands in the body, for what the filter has to say of it.
    positional_place: Box<str>,
}

impl Projection {
    /// Parses the object of a body; its order counts.
    ///
    /// # Errors
    /// With the place and MongoDB's number, such as 31253 and 31254 where inclusion and exclusion are mixed.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let _patterns = crate::pattern_count::PatternCount::open();
        parse::parse(value, context).map_err(|e| e.at(&context.place))
    }

    /// Parses the value of `$project`: `$slice` and `$elemMatch` are expressions there, if anything, and there is no
    /// positional operator.
    ///
    /// # Errors
    /// As [`Projection::parse`]; 15969, 51272, 31324.
    pub fn parse_stage(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let _patterns = crate::pattern_count::PatternCount::open();
        parse::parse_stage(value, context).map_err(|e| e.at(&context.place))
    }

    /// The exclusion of paths, each with its place.
    ///
    /// # Errors
    /// As [`Projection::parse`].
    pub(crate) fn excluding(paths: &[(Place<'_>, &str)], context: &ParseContext<'_>) -> Result<Self, QueryError> {
        parse::exclusion(paths, context)
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.mode == Mode::Exclusion && self.root.children().is_empty()
    }

    /// Whether it names what stays or what goes.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The paths that are needed to apply it, where they are all that is: an inclusion of nothing but paths.
    #[must_use]
    pub fn included_paths(&self) -> Option<Vec<String>> {
        let mut paths = Vec::new();
        (self.mode == Mode::Inclusion && collect(&self.root, "", &mut paths)).then_some(paths)
    }

    /// Whether it holds the positional operator, so that it needs the filter: [`Projection::for_filter`].
    #[must_use]
    pub fn is_positional(&self) -> bool {
        self.root.positional
    }

    /// Whether it does no more than to pick fields and stretches of arrays. What does more, an expression or a condition,
    /// belongs on a thread that may be kept.
    #[must_use]
    pub fn is_cheap(&self) -> bool {
        picks_alone(&self.root)
    }

    /// The same for what `filter` matches: the positional operator asks it which element that was.
    ///
    /// # Errors
    /// 31277 where the positional operator stands on a path that the filter does not ask about.
    pub fn for_filter(mut self, filter: &Filter) -> Result<Self, QueryError> {
        if self.root.positional {
            self.check_filter(filter)?;
            self.filter = Some(Arc::new(filter.clone()));
        }
        Ok(self)
    }

    fn check_filter(&self, filter: &Filter) -> Result<(), QueryError> {
        let named = self.root.children().iter().find(|(_, part)| match part {
            Part::Positional => true,
            Part::Tree(tree) => tree.positional,
            _ => false,
        });
        match named {
            Some((name, _)) if !asks_about(filter.ast(), name) => {
                let message = format!("Positional projection on '{name}' does not match the query document.");
                Err(QueryError::location(31277, message).at_written(&self.positional_place))
            }
            _ => Ok(()),
        }
    }

    /// Appends the wanted parts of a document.
    ///
    /// # Errors
    /// 51246 where the positional operator finds no element that the filter matched, and those of expressions.
    pub fn apply(&self, document: JsonbRef<'_>, out: &mut Builder) -> Result<(), QueryError> {
        self.apply_within(document, out, Budget::default())
    }

    /// The same with what all its expressions together may spend, and with a way to stop: it is asked now and then
    /// whether to go on.
    ///
    /// # Errors
    /// As [`Projection::apply`], `MaxTimeMSExpired` (50) where it was stopped.
    pub fn apply_within(
        &self,
        document: JsonbRef<'_>,
        out: &mut Builder,
        budget: Budget<'_>,
    ) -> Result<(), QueryError> {
        let meter = Meter::new(budget);
        let position = match &self.filter {
            Some(filter) => filter.matches_at_in(document, &meter)?.flatten(),
            None => None,
        };
        apply::apply(self, document, position, &meter, out)
    }
}

fn picks_alone(tree: &Tree) -> bool {
    tree.children().iter().all(|(_, part)| match part {
        Part::Include | Part::Exclude | Part::Slice(_) => true,
        Part::Tree(tree) => picks_alone(tree),
        Part::ElemMatch(_) | Part::Positional | Part::Computed(_) => false,
    })
}

/// Collects the paths of a tree of inclusions; says whether it is one.
fn collect(tree: &Tree, prefix: &str, paths: &mut Vec<String>) -> bool {
    tree.children().iter().all(|(name, part)| {
        let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        match part {
            Part::Include => {
                paths.push(path);
                true
            }
            Part::Exclude => true,
            Part::Tree(tree) => collect(tree, &path, paths),
            _ => false,
        }
    })
}

/// Whether a filter has a condition on a field or below it.
fn asks_about(node: &Node, name: &str) -> bool {
    match node {
        Node::All(nodes) => nodes.iter().any(|n| asks_about(n, name)),
        Node::Any(nodes) => nodes.iter().any(|n| asks_about(n, name)),
        Node::Not(inner) => asks_about(inner, name),
        Node::Field(field) => field.path.parts().first().is_some_and(|part| part.name() == name),
        _ => false,
    }
}

//! How columns answer a filter, for a person: stages by their names in the API (section 6 of the contract).

use quarrydb_index::column::Values;

use super::prepare::{Ask, Field, Prepared, Step};
use crate::columns::value::Tag;
use crate::columns::{Found, Source};
use crate::error::Result;

/// A stage of a plan that finds rows.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Its name.
    pub name: &'static str,
    /// The path whose column it reads.
    pub path: Option<String>,
    /// The declared index that it reads, or that is on the path.
    pub index: Option<String>,
    /// What it works on.
    pub inputs: Vec<Stage>,
}

impl Stage {
    fn of(name: &'static str, inputs: Vec<Self>) -> Self {
        Self { name, path: None, index: None, inputs }
    }

    /// Names the declared index of each path that has one.
    pub(crate) fn name_indexes(&mut self, name_of: &dyn Fn(&str) -> Option<String>) {
        if let Some(path) = &self.path {
            self.index = name_of(path);
        }
        self.inputs.iter_mut().for_each(|input| input.name_indexes(name_of));
    }

    /// The paths of all columns read.
    pub(crate) fn paths<'s>(&'s self, out: &mut Vec<&'s str>) {
        out.extend(self.path.as_deref());
        self.inputs.iter().for_each(|input| input.paths(out));
    }
}

impl Prepared {
    /// The stages in which the columns of `source` are asked; none where they say nothing at all.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn describe(&self, source: Source<'_>) -> Result<Option<Stage>> {
        if self.is_unknown() { Ok(None) } else { describe(&self.root, source).map(Some) }
    }
}

fn describe(step: &Step, source: Source<'_>) -> Result<Stage> {
    let all = |steps: &[Step]| steps.iter().map(|step| describe(step, source)).collect::<Result<Vec<_>>>();
    Ok(match step {
        Step::All(steps) | Step::Any(steps) if steps.len() == 1 => return describe(&steps[0], source),
        Step::All(steps) => Stage::of("And", all(steps)?),
        Step::Any(steps) => Stage::of("Or", all(steps)?),
        Step::Not(inner) => Stage::of("Not", vec![describe(inner, source)?]),
        Step::Constant(_) => Stage::of("Constant", Vec::new()),
        Step::Unknown => Stage::of("DocumentScan", Vec::new()),
        Step::Field(field) if matches!(field.ask, Ask::Unknown) => Stage::of("DocumentScan", Vec::new()),
        Step::Field(field) | Step::Span { between: field, .. } => {
            let name = if has_lists(field, source)? { "BitmapIndex" } else { "ColumnScan" };
            Stage { name, path: Some(field.path.clone()), index: None, inputs: Vec::new() }
        }
    })
}

/// Whether equality and ranges are found from the counts and lists of values, not by a scan.
fn has_lists(field: &Field, source: Source<'_>) -> Result<bool> {
    if !matches!(field.ask, Ask::Numbers(_) | Ask::Range { .. } | Ask::In(_) | Ask::Exists | Ask::Null) {
        return Ok(false);
    }
    let Found::Column(data) = source.find(&field.path)? else { return Ok(true) };
    let listed = || {
        for lane in data.column()?.lanes()? {
            let tag = Tag::of(lane.tag());
            let lists = match tag {
                Some(tag) if !tag.is_mark() => data.postings(tag)?.is_some(),
                _ => true,
            };
            if !lists && !matches!(lane.values(), Values::Dictionary(_)) && lane.distinct().count > 1 {
                return Ok(false);
            }
        }
        Ok(true)
    };
    listed().map_err(|error| source.unreadable(&field.path, &error))
}

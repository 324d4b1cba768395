//! Columns of several segments to the column of the one they become, without a document: values go to their new rows,
//! encodings are chosen anew, dictionaries lose what no row has any more.

use super::Value;
use super::lane::{Lane, Values};
use super::reader::Column;
use super::writer::ColumnWriter;
use crate::error::{Error, Result, corrupt};
use crate::remap::{RowRemap, origins};
use crate::row::RowId;

/// Values of one lane of one input, unpacked, so that rows may come in any order.
struct Source<'a> {
    lane: Lane<'a>,
    /// Keys or codes by number; empty for raw strings.
    keys: Vec<u64>,
    /// The dictionary's values, or the raw ones.
    strings: Vec<Box<[u8]>>,
}

impl<'a> Source<'a> {
    fn new(lane: Lane<'a>) -> Result<Self> {
        // Ranks that lie could give every row every value.
        lane.presence().check()?;
        let (mut keys, mut strings) = (Vec::new(), Vec::new());
        match lane.values {
            Values::Numbers(numbers) => numbers.packed.for_each(|key| keys.push(key)),
            Values::Dictionary(dictionary) => {
                dictionary.codes.for_each(|code| keys.push(code));
                dictionary.for_each(|_, bytes, _| strings.push(bytes.into()))?;
            }
            Values::Raw(raw) => raw.for_each(|_, bytes| strings.push(bytes.into()))?,
        }
        Ok(Self { lane, keys, strings })
    }

    fn copy(&self, from: RowId, to: RowId, writer: &mut ColumnWriter) -> Result<()> {
        for value in self.lane.presence().values_of(from) {
            let missing = || corrupt("a value of this number", value);
            let value = match self.lane.values {
                Values::Numbers(_) => self.lane.value_of(*self.keys.get(value).ok_or_else(missing)?),
                Values::Dictionary(_) => {
                    let code = *self.keys.get(value).ok_or_else(missing)?;
                    Value::Bytes(self.strings.get(code as usize).ok_or_else(missing)?)
                }
                Values::Raw(_) => Value::Bytes(self.strings.get(value).ok_or_else(missing)?),
            };
            writer.push(self.lane.tag(), to, value)?;
        }
        Ok(())
    }
}

/// Merges the columns of several segments. An input without such a column is `None`: its rows miss the place.
///
/// # Errors
/// `Corrupt`; `Misuse` if a column has other rows than its remap or a new row does not come from exactly one old one.
pub fn merge(inputs: &[(Option<Column<'_>>, &RowRemap)]) -> Result<Vec<u8>> {
    let remaps: Vec<&RowRemap> = inputs.iter().map(|(_, remap)| *remap).collect();
    let origins = origins(&remaps)?;
    let mut writer = ColumnWriter::new();
    let mut sources: Vec<Vec<Source<'_>>> = Vec::with_capacity(inputs.len());
    for (column, remap) in inputs {
        let Some(column) = column else {
            sources.push(Vec::new());
            continue;
        };
        if column.rows() != remap.rows() {
            return Err(Error::Misuse { what: "a remap has the rows of its column" });
        }
        remap.map(&column.nulls()?).iter().for_each(|row| writer.set_null(row));
        remap.map(&column.arrays()?).iter().for_each(|row| writer.set_array(row));
        remap.map(&column.present()?).iter().for_each(|row| writer.set_present(row));
        sources.push(column.lanes()?.into_iter().map(Source::new).collect::<Result<_>>()?);
    }
    for (to, &(input, from)) in (0..).zip(&origins) {
        for source in sources.get(input as usize).into_iter().flatten() {
            source.copy(from, RowId::at(to), &mut writer)?;
        }
    }
    writer.finish(origins.len() as u32)
}

//! States as bytes, for temporary files of this process.

use super::deviation::Deviation;
use super::objects::Objects;
use super::ranked::{Entry, Ranked};
use super::state::{Form, form};
use super::values::{LastValues, Values};
use super::{Accumulator, State};
use crate::QueryError;
use crate::exact::Sum;
use crate::exact::codec::{Reader, damaged, put_bytes, put_u64};
use quarrydb_jsonb::{JsonbBuf, JsonbRef};

impl State {
    /// Appends the state, to be read by [`State::read`].
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Sum(sum) => sum.write(out),
            Form::Average(sum, count) => {
                sum.write(out);
                put_u64(*count, out);
            }
            Form::Count(count) => put_u64(*count, out),
            Form::One(kept) => {
                put_u64(u64::from(kept.is_some()), out);
                if let Some(value) = kept {
                    put_bytes(value.as_bytes(), out);
                }
            }
            Form::Values(values) => write_values(values, out),
            Form::Set(set) => write_values(&set.values, out),
            Form::Deviation(d) => {
                [d.count, d.mean.to_bits(), d.squares.to_bits()].iter().for_each(|n| put_u64(*n, out))
            }
            Form::Objects(objects) => {
                put_u64(objects.fields.len() as u64, out);
                for (name, value) in &objects.fields {
                    put_bytes(name.as_bytes(), out);
                    put_bytes(value.as_bytes(), out);
                }
            }
            Form::Ranked(ranked) => {
                [ranked.wanted, ranked.seen, ranked.kept.len() as u64].iter().for_each(|n| put_u64(*n, out));
                for entry in &ranked.kept {
                    put_u64(entry.seen, out);
                    put_bytes(&entry.key, out);
                    put_bytes(entry.value.as_bytes(), out);
                }
            }
            Form::FirstN(first) => {
                put_u64(first.0, out);
                write_values(&first.1, out);
            }
            Form::LastN(last) => {
                put_u64(last.wanted, out);
                put_u64(last.values.len() as u64, out);
                last.values.iter().for_each(|v| put_bytes(v.as_bytes(), out));
            }
            Form::Numbers(numbers) => {
                put_u64(numbers.len() as u64, out);
                numbers.iter().for_each(|n| put_u64(n.to_bits(), out));
            }
        }
    }

    /// Reads a state of the same accumulator from the beginning of `bytes`; gives what follows it.
    ///
    /// # Errors
    /// Where the bytes are not those that were written.
    pub fn read<'b>(accumulator: &Accumulator, bytes: &'b [u8]) -> Result<(Self, &'b [u8]), QueryError> {
        let mut from = Reader(bytes);
        let state = read(accumulator, &mut from)?;
        Ok((Self(state), from.0))
    }
}

fn write_values(values: &Values, out: &mut Vec<u8>) {
    put_u64(values.count, out);
    put_bytes(&values.bytes, out);
}

fn read_values(from: &mut Reader<'_>) -> Result<Values, QueryError> {
    let count = from.u64()?;
    Ok(Values { bytes: from.bytes()?.to_vec(), count })
}

fn read_value(from: &mut Reader<'_>) -> Result<JsonbBuf, QueryError> {
    Ok(JsonbBuf::from_valid(from.bytes()?.to_vec()))
}

fn read(accumulator: &Accumulator, from: &mut Reader<'_>) -> Result<Form, QueryError> {
    Ok(match form(accumulator.kind, 1) {
        Form::Sum(_) => Form::Sum(Sum::read(from)?),
        Form::Average(..) => Form::Average(Sum::read(from)?, from.u64()?),
        Form::Count(_) => Form::Count(from.u64()?),
        Form::One(_) => Form::One(if from.u64()? == 0 { None } else { Some(read_value(from)?) }),
        Form::Values(_) => Form::Values(read_values(from)?),
        Form::Set(mut set) => {
            read_values(from)?.iter().for_each(|v| set.add(v));
            Form::Set(set)
        }
        Form::Deviation(_) => {
            Form::Deviation(Deviation { count: from.u64()?, mean: from.f64()?, squares: from.f64()? })
        }
        Form::Objects(_) => {
            let mut objects = Objects::default();
            for _ in 0..from.u64()? {
                let name = std::str::from_utf8(from.bytes()?).map_err(|_| damaged())?;
                objects.put(name, JsonbRef::from_valid(from.bytes()?));
            }
            Form::Objects(Box::new(objects))
        }
        Form::Ranked(_) => {
            let mut ranked = Ranked::new(from.u64()?);
            ranked.seen = from.u64()?;
            for _ in 0..from.u64()? {
                let seen = from.u64()?;
                let key = from.bytes()?.into();
                ranked.keep(Entry { key, seen, value: read_value(from)? });
            }
            Form::Ranked(Box::new(ranked))
        }
        Form::FirstN(_) => Form::FirstN(Box::new((from.u64()?, read_values(from)?))),
        Form::LastN(_) => {
            let mut last = LastValues::new(from.u64()?);
            for _ in 0..from.u64()? {
                last.push(read_value(from)?);
            }
            Form::LastN(Box::new(last))
        }
        Form::Numbers(_) => {
            let count = from.u64()?;
            let mut numbers = Vec::new();
            for _ in 0..count {
                numbers.push(from.f64()?);
            }
            Form::Numbers(numbers)
        }
    })
}

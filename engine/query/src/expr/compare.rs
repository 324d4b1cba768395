//! Comparison over all types, negation, and what a value is.

use super::datum::Datum;
use super::registry::{Arguments, ONE, Operator, TWO};
use crate::QueryError;
use std::cmp::Ordering;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$cmp", shape: TWO, run: cmp },
    Operator { name: "$eq", shape: TWO, run: |args| test(args, Ordering::is_eq) },
    Operator { name: "$ne", shape: TWO, run: |args| test(args, Ordering::is_ne) },
    Operator { name: "$lt", shape: TWO, run: |args| test(args, Ordering::is_lt) },
    Operator { name: "$lte", shape: TWO, run: |args| test(args, Ordering::is_le) },
    Operator { name: "$gt", shape: TWO, run: |args| test(args, Ordering::is_gt) },
    Operator { name: "$gte", shape: TWO, run: |args| test(args, Ordering::is_ge) },
    Operator { name: "$not", shape: ONE, run: |args| Ok(Datum::Bool(!args.get(0).is_true())) },
    Operator { name: "$type", shape: ONE, run: |args| Ok(Datum::Text(args.get(0).type_name())) },
    Operator { name: "$isNumber", shape: ONE, run: |args| Ok(Datum::Bool(args.get(0).as_number().is_some())) },
    Operator { name: "$isArray", shape: ONE, run: |args| Ok(Datum::Bool(args.get(0).is_array())) },
];

fn cmp<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    Ok(Datum::int(args.get(0).compare(args.get(1))? as i32))
}

fn test<'a>(args: &Arguments<'_, 'a>, wanted: fn(Ordering) -> bool) -> Outcome<'a> {
    Ok(Datum::Bool(wanted(args.get(0).compare(args.get(1))?)))
}

//! Arrays taken as sets: equal elements count once, order does not.
//!
//! Results of union and intersection are in MongoDB's order of values, so that they are the same every time.

use super::datum::Datum;
use super::registry::{ANY, Arguments, ONE, Operator, Shape, TWO};
use crate::QueryError;
use std::collections::{BTreeMap, HashSet};

type Outcome<'a> = Result<Datum<'a>, QueryError>;

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$setUnion", shape: ANY, run: union },
    Operator { name: "$setIntersection", shape: ANY, run: intersection },
    Operator { name: "$setDifference", shape: TWO, run: difference },
    Operator { name: "$setEquals", shape: Shape::Positional(2, usize::MAX), run: equals },
    Operator { name: "$setIsSubset", shape: TWO, run: is_subset },
    Operator { name: "$anyElementTrue", shape: ONE, run: |args| Ok(Datum::Bool(flags(args, 17041)?.any(|t| t))) },
    Operator { name: "$allElementsTrue", shape: ONE, run: |args| Ok(Datum::Bool(flags(args, 17040)?.all(|t| t))) },
];

fn not_array(args: &Arguments<'_, '_>, found: &Datum<'_>, code: i32) -> QueryError {
    let message = format!("all operands of {} must be arrays, one is of type {}", args.name, found.type_name());
    QueryError::location(code, message)
}

fn elements<'a>(args: &mut Arguments<'_, 'a>, i: usize, code: i32) -> Result<Vec<(Vec<u8>, Datum<'a>)>, QueryError> {
    let Some(elements) = args.get(i).elements() else { return Err(not_array(args, args.get(i), code)) };
    let mut keyed = Vec::new();
    for element in elements {
        args.scope.step(1)?;
        let key = element.sort_key()?;
        args.scope.charge(key.len() + size_of::<Datum<'_>>())?;
        keyed.push((key, element));
    }
    Ok(keyed)
}

fn union<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let mut all = BTreeMap::new();
    for i in 0..args.len() {
        for (key, element) in elements(args, i, 17043)? {
            all.entry(key).or_insert(element);
        }
    }
    args.array(all.into_values().collect())
}

fn intersection<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    if args.len() == 0 {
        return args.array(Vec::new());
    }
    let mut common: BTreeMap<_, _> = elements(args, 0, 17047)?.into_iter().rev().collect();
    for i in 1..args.len() {
        let keys: HashSet<_> = elements(args, i, 17047)?.into_iter().map(|(key, _)| key).collect();
        common.retain(|key, _| keys.contains(key));
    }
    args.array(common.into_values().collect())
}

fn difference<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.any_nullish() {
        return Ok(Datum::Null);
    }
    let first = elements(args, 0, 17048)?;
    let mut seen: HashSet<_> = elements(args, 1, 17049)?.into_iter().map(|(key, _)| key).collect();
    let left = first.into_iter().filter(|(key, _)| seen.insert(key.clone())).map(|(_, e)| e).collect();
    args.array(left)
}

fn equals<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let mut first: Option<HashSet<Vec<u8>>> = None;
    let mut equal = true;
    for i in 0..args.len() {
        let keys: HashSet<_> = elements(args, i, 17044)?.into_iter().map(|(key, _)| key).collect();
        match &first {
            None => first = Some(keys),
            Some(first) => equal &= *first == keys,
        }
    }
    Ok(Datum::Bool(equal))
}

fn is_subset<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let first = elements(args, 0, 17046)?;
    let second: HashSet<_> = elements(args, 1, 17042)?.into_iter().map(|(key, _)| key).collect();
    Ok(Datum::Bool(first.iter().all(|(key, _)| second.contains(key))))
}

fn flags<'a>(args: &Arguments<'_, 'a>, code: i32) -> Result<impl Iterator<Item = bool> + use<'a>, QueryError> {
    match args.get(0).elements() {
        Some(elements) => Ok(elements.map(|e| e.is_true())),
        None => {
            let message = format!("{}'s argument must be an array, but is {}", args.name, args.get(0).type_name());
            Err(QueryError::location(code, message))
        }
    }
}

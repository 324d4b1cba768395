//! Rows by engines: what each took, repetition by repetition; who is ahead, and by how much.
//!
//! Takes times that were measured elsewhere. Figures are medians over repetitions, ratios are of medians. A floor is a
//! column like an engine's. The table, the JSON and the judgement of goals are made of the same cells.

use super::engine::{Engine, Place, Takes};
use super::rows::{Bound, Row};
use crate::load::median;
use crate::report::number;
use crate::timed::Times;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Names of the floors' columns.
pub const HTTP: &str = "HTTP floor";
/// See `HTTP`.
pub const PRINT: &str = "print floor";
/// See `HTTP`.
pub const WRITE: &str = "write floor";
/// The column that ours are in.
const OURS: &str = "QuarryDB";
/// The engine whose times are the floor of columns.
const COLUMNS: &str = "DuckDB";
/// Within so many times the HTTP floor there is nothing left to be ahead of.
const AT_THE_FLOOR: f64 = 1.25;

/// Shares of single answers whose latency is kept.
pub const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// What one engine took for one row.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// Milliseconds, or how many a second, of each repetition.
    pub values: Vec<f64>,
    /// Microseconds at `QUANTILES`, of each repetition.
    pub micros: [Vec<f64>; QUANTILES.len()],
    /// Why there is none.
    pub absent: Option<String>,
}

#[derive(Clone, Debug)]
struct Line {
    name: String,
    unit: &'static str,
    ahead: f64,
    bound: Bound,
}

/// All of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// What was compared, for a heading.
    pub title: String,
    lines: Vec<Line>,
    engines: Vec<(String, Option<Place>, String)>,
    cells: BTreeMap<(String, String), Cell>,
    takes: BTreeMap<String, Vec<Takes>>,
}

impl Matrix {
    /// Empty, with these rows and engines.
    #[must_use]
    pub fn new(title: &str, rows: &[Row], engines: &[Box<dyn Engine>]) -> Self {
        let mut matrix = Self { title: title.to_owned(), ..Self::default() };
        for row in rows.iter().filter(|row| row.counts) {
            matrix.line(row.name, "ms", row.ahead, row.bound);
        }
        for engine in engines {
            matrix.engines.push((engine.name().to_owned(), Some(engine.place()), engine.describe()));
        }
        matrix
    }

    /// A further row; of one in `1/s` more is better, of all others less.
    pub fn line(&mut self, name: &str, unit: &'static str, ahead: f64, bound: Bound) {
        if !self.lines.iter().any(|line| line.name == name) {
            self.lines.push(Line { name: name.to_owned(), unit, ahead, bound });
        }
    }

    fn cell(&mut self, row: &str, engine: &str) -> &mut Cell {
        if !self.engines.iter().any(|(name, ..)| name == engine) {
            self.engines.push((engine.to_owned(), None, String::new()));
        }
        self.cells.entry((row.to_owned(), engine.to_owned())).or_default()
    }

    /// A repetition's times.
    pub fn add(&mut self, row: &str, engine: &str, times: &Times) {
        self.add_value(row, engine, times.millis(), times);
    }

    /// The same with a value of its own.
    pub fn add_value(&mut self, row: &str, engine: &str, value: f64, times: &Times) {
        let cell = self.cell(row, engine);
        cell.values.push(value);
        for ((_, q), micros) in QUANTILES.iter().zip(&mut cell.micros) {
            micros.push(times.micros(*q));
        }
    }

    /// Says why an engine has no figure.
    pub fn absent(&mut self, row: &str, engine: &str, why: &str) {
        self.cell(row, engine).absent = Some(why.to_owned());
    }

    /// What an engine takes at the end: disk, memory.
    pub fn takes(&mut self, engine: &str, takes: Takes) {
        self.takes.entry(engine.to_owned()).or_default().push(takes);
    }

    /// Names of the rows, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| line.name.as_str())
    }

    /// Names of the columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.engines.iter().map(|(name, ..)| name.as_str())
    }

    /// The figure of a row and an engine.
    #[must_use]
    pub fn value(&self, row: &str, engine: &str) -> f64 {
        self.cells.get(&(row.to_owned(), engine.to_owned())).map_or(f64::NAN, |cell| median(&cell.values))
    }

    /// Microseconds at `QUANTILES`.
    #[must_use]
    pub fn micros(&self, row: &str, engine: &str) -> [f64; QUANTILES.len()] {
        let cell = self.cells.get(&(row.to_owned(), engine.to_owned()));
        std::array::from_fn(|i| cell.map_or(f64::NAN, |cell| median(&cell.micros[i])))
    }

    /// By how much ours are ahead of the best server; below 1 where it is ahead.
    fn ahead(&self, line: &Line) -> f64 {
        let ours = self.value(&line.name, OURS);
        let servers = self.engines.iter().filter(|(_, place, _)| *place == Some(Place::Server));
        let ratios = servers.map(|(name, ..)| self.value(&line.name, name) / ours);
        let ratios = ratios.map(|r| if line.unit == "1/s" { 1.0 / r } else { r }).filter(|r| !r.is_nan());
        let ratio = ratios.fold(f64::INFINITY, f64::min);
        let floor = self.value(&line.name, HTTP) * AT_THE_FLOOR;
        if ratio.is_infinite() {
            f64::NAN
        } else if line.unit == "ms" && ours <= floor && ours * ratio <= floor {
            1.0
        } else {
            ratio
        }
    }

    /// The floor of a row: its name and its value.
    fn floor(&self, line: &Line) -> (&'static str, f64) {
        let at = |name: &'static str| (name, self.value(&line.name, name));
        if line.bound == Bound::Columns {
            return ("HTTP + columns", at(HTTP).1 + at(COLUMNS).1);
        }
        let known = [at(PRINT), at(HTTP), at(WRITE)].into_iter().find(|(_, value)| !value.is_nan());
        known.unwrap_or(("", f64::NAN))
    }

    /// Whether a row keeps what was agreed on, beside its floor and beside the servers that were there.
    fn met(&self, line: &Line) -> Option<bool> {
        let ours = self.value(&line.name, OURS);
        let beside_floor = match line.bound {
            Bound::Open => None,
            Bound::Floor(times) => Some(ours <= self.floor(line).1 * times),
            Bound::Columns => Some(ours <= self.floor(line).1),
        };
        let beside_floor = beside_floor.filter(|_| !self.floor(line).1.is_nan());
        let ahead = self.ahead(line);
        // Where all are at the floor there is nothing to be ahead of.
        let beside_servers = (!ahead.is_nan()).then_some(ahead >= line.ahead);
        let judged: Vec<bool> = [beside_floor, beside_servers].into_iter().flatten().collect();
        (!ours.is_nan() && !judged.is_empty()).then(|| judged.iter().all(|met| *met))
    }

    /// Names of the rows that miss what was agreed on.
    #[must_use]
    pub fn missed(&self) -> Vec<&str> {
        self.lines.iter().filter(|line| self.met(line) == Some(false)).map(|line| line.name.as_str()).collect()
    }

    /// The geometric mean of how far ours are ahead of each row's best server, and over how many rows.
    #[must_use]
    pub fn mean_ahead(&self) -> (f64, usize) {
        let ratios: Vec<f64> = self.lines.iter().map(|line| self.ahead(line)).filter(|r| !r.is_nan()).collect();
        let sum: f64 = ratios.iter().map(|r| r.ln()).sum();
        ((sum / ratios.len() as f64).exp(), ratios.len())
    }

    /// In markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let engines: Vec<&str> =
            self.engines.iter().filter(|(_, place, _)| place.is_some()).map(|e| e.0.as_str()).collect();
        let mut out = format!("## {}\n\n", self.title);
        for (name, place, described) in self.engines.iter().filter(|(_, place, _)| place.is_some()) {
            let place = match place {
                Some(Place::InProcess) => "in process; ",
                _ => "",
            };
            let _ = writeln!(out, "* {name}: {place}{described}");
        }
        let _ = writeln!(
            out,
            "\n| row | {} | floor | ours / floor | wanted | best server / ours | wanted | met |",
            engines.join(" | ")
        );
        let _ = writeln!(out, "| --- |{} ---: | ---: | --- | ---: | --- | --- |", " ---: |".repeat(engines.len()));
        let shown = |value: f64| if value.is_nan() { String::new() } else { number(value) };
        for line in &self.lines {
            let mut cells = String::new();
            for engine in &engines {
                let cell = self.cells.get(&(line.name.clone(), (*engine).to_owned()));
                let absent = cell.and_then(|c| c.absent.clone()).unwrap_or_default();
                let value = self.value(&line.name, engine);
                let _ = write!(cells, " {} |", if value.is_nan() { absent } else { number(value) });
            }
            let ((floor, value), ours) = (self.floor(line), self.value(&line.name, OURS));
            let floor = if value.is_nan() { String::new() } else { format!("{} ({floor})", number(value)) };
            let bound = match line.bound {
                Bound::Open => String::new(),
                Bound::Floor(times) => format!("<= {}", number(times)),
                Bound::Columns => "<= 1".into(),
            };
            let ahead = self.ahead(line);
            let wanted = if ahead.is_nan() { String::new() } else { format!(">= {}", number(line.ahead)) };
            let met = self.met(line).map_or("", |met| if met { "yes" } else { "no" });
            let _ = writeln!(
                out,
                "| {}, {} |{cells} {floor} | {} | {bound} | {} | {wanted} | {met} |",
                line.name,
                line.unit,
                shown(ours / value),
                shown(ahead)
            );
        }
        let (mean, rows) = self.mean_ahead();
        if rows > 0 {
            let _ =
                writeln!(out, "\nAhead of each row's best server by {} (geometric mean of {rows} rows).", number(mean));
        }
        for (engine, takes) in &self.takes {
            let middle = |pick: fn(&Takes) -> Option<u64>| {
                let values: Vec<f64> = takes.iter().filter_map(pick).map(|b| b as f64 / 1e6).collect();
                if values.is_empty() { "not known".into() } else { format!("{} MB", number(median(&values))) }
            };
            let _ = writeln!(
                out,
                "* {engine} at the end: disk {}, anonymous memory {}",
                middle(|t| t.disk),
                middle(|t| t.memory)
            );
        }
        out
    }

    /// Every sample.
    #[must_use]
    pub fn json(&self) -> Value {
        let engines = self.engines.iter().map(|(name, place, described)| {
            json!({"name": name, "place": place.map(|p| format!("{p:?}")), "described": described})
        });
        let cells = self.cells.iter().map(|((row, engine), cell)| {
            let micros: serde_json::Map<String, Value> = QUANTILES
                .iter()
                .zip(&cell.micros)
                .map(|((name, _), values)| ((*name).to_owned(), json!(values)))
                .collect();
            json!({"row": row, "engine": engine, "values": cell.values, "micros": micros, "absent": cell.absent})
        });
        let lines = self.lines.iter().map(|l| json!({"row": l.name, "unit": l.unit, "ahead": l.ahead}));
        let (lines, engines): (Vec<Value>, Vec<Value>) = (lines.collect(), engines.collect());
        json!({"title": self.title, "rows": lines, "engines": engines, "cells": cells.collect::<Vec<Value>>()})
    }
}

#[cfg(test)]
#[path = "matrix_tests.rs"]
mod tests;

//! What is asked, once for all engines: a condition on documents, a grouping of them.
//!
//! Gives MongoDB's filters and pipelines, SQL in the dialect of whoever stores documents in a column or fields in columns,
//! and its own straight answer on one document. A question is thus written once, and no engine is asked another one.

use serde_json::{Value, json};

/// A value to compare with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// Text.
    Text(&'static str),
    /// A number.
    Number(f64),
    /// Yes or no.
    Bool(bool),
}

use Literal::{Bool, Number, Text};

/// Which documents are meant.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Every one.
    All,
    /// The field is this.
    Is(&'static str, Literal),
    /// The field is at least the first and below the second.
    From(&'static str, Literal, Option<Literal>),
    /// The field is at least the first and at most the second.
    Between(&'static str, Literal, Literal),
    /// The field is one of these.
    OneOf(&'static str, &'static [&'static str]),
    /// All of these hold.
    And(Vec<Condition>),
    /// One of these holds.
    Or(Vec<Condition>),
}

/// How an engine names a field of a document in SQL.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The field at a path as the type of a literal.
    pub field: fn(&str, Literal) -> String,
    /// How yes and no are written.
    pub bools: [&'static str; 2],
}

impl Literal {
    fn json(self) -> Value {
        match self {
            Text(text) => json!(text),
            // Whole numbers as such: a client would write them so.
            Number(n) if n.fract() == 0.0 => json!(n as i64),
            Number(n) => json!(n),
            Bool(b) => json!(b),
        }
    }

    fn sql(self, dialect: &Dialect) -> String {
        match self {
            Text(text) => format!("'{text}'"),
            Number(n) => format!("{n}"),
            Bool(b) => dialect.bools[usize::from(b)].into(),
        }
    }

    /// Whether `value` is of the literal's type and stands to it as `wanted` says.
    fn compares(self, value: Option<&Value>, wanted: fn(std::cmp::Ordering) -> bool) -> bool {
        let order = match (self, value) {
            (Text(text), Some(Value::String(s))) => Some(s.as_str().cmp(text)),
            (Number(n), Some(Value::Number(v))) => v.as_f64().and_then(|v| v.partial_cmp(&n)),
            (Bool(b), Some(Value::Bool(v))) => Some(v.cmp(&b)),
            _ => None,
        };
        order.is_some_and(wanted)
    }
}

/// The value at a dotted path; no array is on any that is asked for.
fn at<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(document, |value, name| value.get(name))
}

impl Condition {
    /// As a filter.
    #[must_use]
    pub fn filter(&self) -> Value {
        let all = |parts: &[Self]| parts.iter().map(Self::filter).collect::<Vec<Value>>();
        match self {
            Self::All => json!({}),
            Self::Is(path, literal) => json!({*path: literal.json()}),
            Self::From(path, from, None) => json!({*path: {"$gte": from.json()}}),
            Self::From(path, from, Some(below)) => json!({*path: {"$gte": from.json(), "$lt": below.json()}}),
            Self::Between(path, from, to) => json!({*path: {"$gte": from.json(), "$lte": to.json()}}),
            Self::OneOf(path, texts) => json!({*path: {"$in": texts}}),
            Self::And(parts) => {
                let mut filter = serde_json::Map::new();
                parts.iter().filter_map(|p| p.filter().as_object().cloned()).for_each(|mut m| filter.append(&mut m));
                Value::Object(filter)
            }
            Self::Or(parts) => json!({"$or": all(parts)}),
        }
    }

    /// As what stands behind WHERE.
    #[must_use]
    pub fn sql(&self, dialect: &Dialect) -> String {
        let field = |path: &str, literal: &Literal| (dialect.field)(path, *literal);
        let joined = |parts: &[Self], with: &str| {
            let parts: Vec<String> = parts.iter().map(|p| p.sql(dialect)).collect();
            format!("({})", parts.join(with))
        };
        match self {
            Self::All => "true".into(),
            Self::Is(path, literal) => format!("{} = {}", field(path, literal), literal.sql(dialect)),
            Self::From(path, from, None) => format!("{} >= {}", field(path, from), from.sql(dialect)),
            Self::From(path, from, Some(below)) => {
                let name = field(path, from);
                format!("({name} >= {} AND {name} < {})", from.sql(dialect), below.sql(dialect))
            }
            Self::Between(path, from, to) => {
                format!("{} BETWEEN {} AND {}", field(path, from), from.sql(dialect), to.sql(dialect))
            }
            Self::OneOf(path, texts) => {
                let texts: Vec<String> = texts.iter().map(|t| format!("'{t}'")).collect();
                format!("{} IN ({})", field(path, &Text("")), texts.join(", "))
            }
            Self::And(parts) => joined(parts, " AND "),
            Self::Or(parts) => joined(parts, " OR "),
        }
    }

    /// Whether it holds of a document.
    #[must_use]
    pub fn holds(&self, document: &Value) -> bool {
        match self {
            Self::All => true,
            Self::Is(path, literal) => literal.compares(at(document, path), std::cmp::Ordering::is_eq),
            Self::From(path, from, below) => {
                let value = at(document, path);
                from.compares(value, std::cmp::Ordering::is_ge)
                    && below.is_none_or(|b| b.compares(value, std::cmp::Ordering::is_lt))
            }
            Self::Between(path, from, to) => {
                let value = at(document, path);
                from.compares(value, std::cmp::Ordering::is_ge) && to.compares(value, std::cmp::Ordering::is_le)
            }
            Self::OneOf(path, texts) => at(document, path).and_then(Value::as_str).is_some_and(|s| texts.contains(&s)),
            Self::And(parts) => parts.iter().all(|p| p.holds(document)),
            Self::Or(parts) => parts.iter().any(|p| p.holds(document)),
        }
    }
}

/// Documents grouped: how many each group has and, where wanted, the average of a field. Rows: key, count, average.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// Of which documents.
    pub matched: Condition,
    /// The text field whose values are the groups; without one all are one group, of key null.
    pub by: Option<&'static str>,
    /// The number whose average is wanted.
    pub average: Option<&'static str>,
    /// Only so many groups, the largest first and among equals by key.
    pub top: Option<u32>,
}

impl Grouping {
    /// The fields of an answer's documents, in a row's order.
    #[must_use]
    pub fn fields(&self) -> &'static [&'static str] {
        if self.average.is_some() { &["_id", "count", "average"] } else { &["_id", "count"] }
    }

    /// As a pipeline: text, since the order of a sort's fields counts.
    #[must_use]
    pub fn pipeline(&self) -> String {
        let mut stages = Vec::new();
        if !matches!(self.matched, Condition::All) {
            stages.push(json!({"$match": self.matched.filter()}).to_string());
        }
        let mut group = json!({"_id": self.by.map(|path| format!("${path}")), "count": {"$sum": 1}});
        if let Some(path) = self.average {
            group["average"] = json!({"$avg": format!("${path}")});
        }
        stages.push(json!({"$group": group}).to_string());
        if let Some(top) = self.top {
            stages.push(r#"{"$sort":{"count":-1,"_id":1}}"#.into());
            stages.push(json!({"$limit": top}).to_string());
        }
        format!("[{}]", stages.join(","))
    }

    /// As a query to `table`.
    #[must_use]
    pub fn sql(&self, dialect: &Dialect, table: &str) -> String {
        let key = self.by.map(|path| (dialect.field)(path, Text("")));
        let average = self.average.map(|path| format!(", avg({})", (dialect.field)(path, Number(0.0))));
        let mut sql = format!(
            "SELECT {} AS k, count(*) AS n{} FROM {table} WHERE {}",
            key.as_deref().unwrap_or("NULL"),
            average.unwrap_or_default(),
            self.matched.sql(dialect)
        );
        if let Some(key) = key {
            sql.push_str(&format!(" GROUP BY {key}"));
        }
        if let Some(top) = self.top {
            sql.push_str(&format!(" ORDER BY n DESC, k LIMIT {top}"));
        }
        sql
    }

    /// The group of a document and what it adds to the average; nothing where it is not meant.
    #[must_use]
    pub fn takes(&self, document: &Value) -> Option<(Option<String>, f64)> {
        if !self.matched.holds(document) {
            return None;
        }
        let key = self.by.and_then(|path| at(document, path)).and_then(Value::as_str).map(str::to_owned);
        let number = self.average.and_then(|path| at(document, path)).and_then(Value::as_f64);
        Some((key, number.unwrap_or(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: Dialect = Dialect { field: |path, _| path.replace('.', "_"), bools: ["false", "true"] };

    #[test]
    fn a_condition_says_the_same_to_everyone() {
        let condition = Condition::And(vec![
            Condition::Is("department", Text("Sales")),
            Condition::From("age", Number(50.0), None),
        ]);
        assert_eq!(condition.filter(), json!({"department": "Sales", "age": {"$gte": 50}}));
        assert_eq!(condition.sql(&FLAT), "(department = 'Sales' AND age >= 50)");
        assert!(condition.holds(&json!({"department": "Sales", "age": 50})));
        assert!(!condition.holds(&json!({"department": "Sales", "age": 49})));
        assert!(!condition.holds(&json!({"department": "Sales", "age": "60"})));
        let nested = Condition::From("address.zip", Text("5"), Some(Text("6")));
        assert_eq!(nested.filter(), json!({"address.zip": {"$gte": "5", "$lt": "6"}}));
        assert_eq!(nested.sql(&FLAT), "(address_zip >= '5' AND address_zip < '6')");
        assert!(nested.holds(&json!({"address": {"zip": "59"}})) && !nested.holds(&json!({"address": {"zip": "6"}})));
        let one =
            Condition::Or(vec![Condition::OneOf("city", &["Rome", "Bern"]), Condition::Is("verified", Bool(true))]);
        assert_eq!(one.filter(), json!({"$or": [{"city": {"$in": ["Rome", "Bern"]}}, {"verified": true}]}));
        assert_eq!(one.sql(&FLAT), "(city IN ('Rome', 'Bern') OR verified = true)");
        assert!(one.holds(&json!({"city": "Bern"})) && !one.holds(&json!({"city": "Basel", "verified": false})));
    }

    #[test]
    fn a_grouping_is_a_pipeline_and_a_query() {
        let matched = Condition::Between("age", Number(1.0), Number(2.5));
        let grouping = Grouping { matched, by: Some("city"), average: Some("salary"), top: Some(5) };
        let pipeline = concat!(
            r#"[{"$match":{"age":{"$gte":1,"$lte":2.5}}},"#,
            r#"{"$group":{"_id":"$city","average":{"$avg":"$salary"},"count":{"$sum":1}}},"#,
            r#"{"$sort":{"count":-1,"_id":1}},{"$limit":5}]"#
        );
        assert_eq!(grouping.pipeline(), pipeline);
        let sql = "SELECT city AS k, count(*) AS n, avg(salary) FROM t WHERE age BETWEEN 1 AND 2.5 GROUP BY city \
                   ORDER BY n DESC, k LIMIT 5";
        assert_eq!(grouping.sql(&FLAT, "t"), sql);
        assert_eq!(grouping.takes(&json!({"age": 2, "city": "Bern", "salary": 7})), Some((Some("Bern".into()), 7.0)));
        assert_eq!(grouping.takes(&json!({"age": 3})), None);
    }
}

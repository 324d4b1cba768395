//! Random documents and filters: what must hold for all of them, and what a second meaning says of each.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

#[path = "support/reference.rs"]
mod reference;

use quarrydb_jsonb::{Builder, JsonbBuf, parse};
use quarrydb_query::{Filter, ParseContext, Projection, Sort};
use reference::{Op, Q, V, order};

/// SplitMix64 (Steele, Lea, Flood 2014): enough for tests, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Few names and few values, so that filters meet them.
    fn value(&mut self, depth: usize) -> V {
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 => V::Null,
            1 => V::Bool(self.below(2) == 0),
            2 | 3 => V::Int(self.below(4) as i32 - 1),
            4 => V::Double(*self.pick(&[-1.0, 0.0, 0.5, 1.0, 2.0, -0.0])),
            5 => V::Text((*self.pick(&["", "x", "y"])).to_owned()),
            6 | 7 => V::Array((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: usize) -> V {
        let mut fields: Vec<(String, V)> = Vec::new();
        for _ in 0..self.below(4) {
            let name = *self.pick(&["a", "b", "0", "1"]);
            if fields.iter().all(|(k, _)| k != name) {
                fields.push((name.to_owned(), self.value(depth)));
            }
        }
        V::Object(fields)
    }

    fn path(&mut self) -> String {
        let parts: Vec<&str> = (0..1 + self.below(3)).map(|_| *self.pick(&["a", "a", "b", "b", "0", "1"])).collect();
        parts.join(".")
    }

    fn values(&mut self) -> Vec<V> {
        (0..self.below(4)).map(|_| self.value(1)).collect()
    }

    fn ops(&mut self, depth: usize) -> Vec<Op> {
        let mut ops: Vec<Op> = Vec::new();
        for _ in 0..1 + self.below(2) {
            let op = self.op(depth);
            if ops.iter().all(|o| o.name() != op.name()) {
                ops.push(op);
            }
        }
        ops
    }

    fn op(&mut self, depth: usize) -> Op {
        match self.below(if depth == 0 { 15 } else { 19 }) {
            0..=2 => Op::Eq(self.value(2)),
            3 => Op::Ne(self.value(1)),
            4 => Op::Gt(self.value(1)),
            5 => Op::Gte(self.value(1)),
            6 => Op::Lt(self.value(1)),
            7 => Op::Lte(self.value(1)),
            8 => Op::In(self.values()),
            9 => Op::Nin(self.values()),
            10 => Op::Exists(self.below(2) == 0),
            11 => {
                let types = ["null", "bool", "int", "double", "number", "string", "array", "object"];
                Op::Type(types[self.below(types.len())])
            }
            12 => Op::Size(self.below(3)),
            13 => Op::Mod(*self.pick(&[2, 3, -2]), *self.pick(&[0, 1, -1])),
            14 => Op::All(self.values()),
            15 | 16 => Op::Not(self.ops(depth - 1)),
            17 => Op::ElemValue(self.ops(depth - 1)),
            _ => Op::ElemObject((0..1 + self.below(2)).map(|_| self.query(depth - 1)).collect()),
        }
    }

    fn query(&mut self, depth: usize) -> Q {
        let several = |r: &mut Self| (0..1 + r.below(3)).map(|_| r.query(depth - 1)).collect();
        match if depth == 0 { 9 } else { self.below(10) } {
            0 => Q::And(several(self)),
            1 => Q::Or(several(self)),
            2 => Q::Nor(several(self)),
            _ => Q::Field(self.path(), self.ops(depth)),
        }
    }
}

fn jsonb(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn filter(text: &str) -> Filter {
    Filter::parse(jsonb(text).view(), &ParseContext::new("filter")).unwrap_or_else(|e| panic!("{e:?}: {text}"))
}

fn matches(filter: &Filter, document: &JsonbBuf) -> bool {
    filter.matches(document.view()).unwrap()
}

#[test]
fn filters_mean_what_the_reference_means() {
    let mut matched = 0;
    for seed in 0..4000 {
        let mut random = Random(seed);
        let q = random.query(3);
        let f = filter(&q.json());
        let nor = filter(&format!(r#"{{"$nor": [{}]}}"#, q.json()));
        for _ in 0..12 {
            let document = random.object(4);
            let stored = jsonb(&document.json());
            let expected = reference::matches(&q, &document);
            assert_eq!(matches(&f, &stored), expected, "seed {seed}: {} on {}", q.json(), document.json());
            assert_eq!(matches(&nor, &stored), !expected, "seed {seed}: $nor of {} on {}", q.json(), document.json());
            assert_eq!(f.matches_at(stored.view()).unwrap().is_some(), expected);
            matched += usize::from(expected);
        }
    }
    assert!((8_000..40_000).contains(&matched), "{matched} of 48,000 match: the generator has lost its use");
}

#[test]
fn de_morgan_holds() {
    for seed in 0..1000 {
        let mut random = Random(seed ^ 0xde30);
        let (p, q) = (random.query(2).json(), random.query(2).json());
        let pairs = [
            (format!(r#"{{"$nor": [{p}, {q}]}}"#), format!(r#"{{"$and": [{{"$nor": [{p}]}}, {{"$nor": [{q}]}}]}}"#)),
            (
                format!(r#"{{"$nor": [{{"$and": [{p}, {q}]}}]}}"#),
                format!(r#"{{"$or": [{{"$nor": [{p}]}}, {{"$nor": [{q}]}}]}}"#),
            ),
        ];
        for (left, right) in pairs.map(|(l, r)| (filter(&l), filter(&r))) {
            for _ in 0..10 {
                let document = jsonb(&random.object(4).json());
                assert_eq!(
                    matches(&left, &document),
                    matches(&right, &document),
                    "seed {seed}: {p} {q} on {document:?}"
                );
            }
        }
    }
}

#[test]
fn in_is_or_of_equalities_however_many() {
    for seed in 0..400 {
        let mut random = Random(seed ^ 0x1111);
        let path = random.path();
        let values: Vec<V> = (0..1 + random.below(40)).map(|_| random.value(2)).collect();
        let within = filter(&format!("{{{path:?}: {{\"$in\": {}}}}}", V::Array(values.clone()).json()));
        let branches: Vec<_> = values.iter().map(|v| format!("{{{path:?}: {{\"$eq\": {}}}}}", v.json())).collect();
        let either = filter(&format!(r#"{{"$or": [{}]}}"#, branches.join(", ")));
        for _ in 0..10 {
            let document = jsonb(&random.object(4).json());
            assert_eq!(matches(&within, &document), matches(&either, &document), "seed {seed} on {document:?}");
        }
    }
}

#[test]
fn many_branches_hold_where_one_of_them_holds() {
    let (mut held, mut asked) = (0, 0);
    for seed in 0..300 {
        let mut random = Random(seed ^ 0x0b0b);
        let branches: Vec<String> = (0..16 + random.below(30))
            .map(|_| match random.below(8) {
                // Some that hold on little, some that hold where a field is missing, some of any kind.
                0 => Q::Field(random.path(), vec![Op::Size(2)]).json(),
                1 => format!(r#"{{"$and": [{{"b": [1, {}]}}, {}]}}"#, random.below(9), random.query(1).json()),
                2 => format!(r#"{{"a": {{"$exists": false}}, "c": {}}}"#, random.value(1).json()),
                3 => format!(r#"{{"$nor": [{{"a": {{"$type": ["int", "null"]}}}}, {}]}}"#, random.query(1).json()),
                4 => format!(r#"{{"$expr": {{"$eq": ["$a", {}]}}, "b": 1}}"#, random.below(3)),
                _ => {
                    let (value, other) = (random.value(2), random.value(1));
                    let path = random.path();
                    format!(r#"{{"$and": [{{"{path}": {}}}, {{"b": {}}}]}}"#, value.json(), other.json())
                }
            })
            .collect();
        let list = branches.join(", ");
        let either = filter(&format!(r#"{{"$or": [{list}]}}"#));
        let alone: Vec<Filter> = branches.iter().map(|b| filter(b)).collect();
        let neither = filter(&format!(r#"{{"$nor": [{list}]}}"#));
        for _ in 0..20 {
            let document = jsonb(&random.object(4).json());
            let expected = alone.iter().any(|branch| matches(branch, &document));
            assert_eq!(matches(&either, &document), expected, "seed {seed} on {document:?}");
            assert_eq!(matches(&neither, &document), !expected, "seed {seed} on {document:?}");
            let at = either.matches_at(document.view()).unwrap();
            assert_eq!(at.is_some(), expected, "seed {seed} on {document:?}");
            (held, asked) = (held + usize::from(expected), asked + 1);
        }
    }
    assert!(held > asked / 10 && held < asked * 9 / 10, "{held} of {asked}");
}

#[test]
fn many_branches_on_elements_hold_where_one_of_them_holds() {
    for seed in 0..200 {
        let mut random = Random(seed ^ 0xe1e1);
        let branches: Vec<String> = (0..20)
            .map(|_| {
                let (path, value) = (random.path(), random.value(1).json());
                format!(r#"{{"$and": [{{"{path}": {value}}}, {{"b": {}}}]}}"#, random.value(1).json())
            })
            .collect();
        let either = filter(&format!(r#"{{"a": {{"$elemMatch": {{"$or": [{}]}}}}}}"#, branches.join(", ")));
        let alone: Vec<Filter> =
            branches.iter().map(|b| filter(&format!(r#"{{"a": {{"$elemMatch": {b}}}}}"#))).collect();
        for _ in 0..20 {
            let elements: Vec<String> = (0..3).map(|_| random.value(3).json()).collect();
            let document = jsonb(&format!(r#"{{"a": [{}]}}"#, elements.join(", ")));
            let expected = alone.iter().any(|branch| matches(branch, &document));
            assert_eq!(matches(&either, &document), expected, "seed {seed} on {document:?}");
        }
    }
}

#[test]
fn one_path_sorts_by_the_least_or_the_greatest_of_its_values() {
    let up = Sort::parse(jsonb(r#"{"a": 1}"#).view(), &ParseContext::new("sort")).unwrap();
    let down = Sort::parse(jsonb(r#"{"a": -1}"#).view(), &ParseContext::new("sort")).unwrap();
    let key = |sort: &Sort, value: &V| {
        let mut key = Vec::new();
        sort.key(jsonb(&format!("{{\"a\": {}}}", value.json())).view(), &mut key).unwrap();
        key
    };
    let by = |value: &V, greatest: bool| match value {
        V::Array(elements) if greatest => elements.iter().max_by(|a, b| order(a, b)).cloned(),
        V::Array(elements) => elements.iter().min_by(|a, b| order(a, b)).cloned(),
        _ => Some(value.clone()),
    };
    for seed in 0..3000 {
        let mut random = Random(seed ^ 0x5057);
        let (a, b) = (random.value(3), random.value(3));
        // An empty array is below every value that the generator makes.
        let expected = |greatest| match (by(&a, greatest), by(&b, greatest)) {
            (Some(a), Some(b)) => order(&a, &b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        assert_eq!(key(&up, &a).cmp(&key(&up, &b)), expected(false), "seed {seed}: {a:?} {b:?}");
        assert_eq!(key(&down, &a).cmp(&key(&down, &b)), expected(true).reverse(), "seed {seed}: {a:?} {b:?}");
    }
}

/// What a projection of these paths leaves: `keep` says whether they stay or go.
fn projected(value: &V, paths: &[Vec<String>], keep: bool) -> V {
    let V::Object(fields) = value else { return value.clone() };
    let mut out = Vec::new();
    for (name, value) in fields {
        let inner: Vec<Vec<String>> = paths.iter().filter(|p| p[0] == *name).map(|p| p[1..].to_vec()).collect();
        let left = match inner.as_slice() {
            [] => (!keep).then(|| value.clone()),
            [end] if end.is_empty() => keep.then(|| value.clone()),
            rest => inside(value, rest, keep),
        };
        out.extend(left.map(|v| (name.clone(), v)));
    }
    V::Object(out)
}

/// The same for a value that the paths go on into; an inclusion drops it where they cannot.
fn inside(value: &V, paths: &[Vec<String>], keep: bool) -> Option<V> {
    match value {
        V::Object(_) => Some(projected(value, paths, keep)),
        V::Array(elements) => Some(V::Array(elements.iter().filter_map(|e| inside(e, paths, keep)).collect())),
        _ => (!keep).then(|| value.clone()),
    }
}

#[test]
fn projections_leave_what_the_reference_leaves() {
    for seed in 0..3000 {
        let mut random = Random(seed ^ 0x9107);
        let keep = random.below(2) == 0;
        let mut paths: Vec<Vec<String>> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let path: Vec<String> = random.path().split('.').map(str::to_owned).collect();
            let collides = |p: &Vec<String>| p.iter().zip(&path).all(|(a, b)| a == b);
            if !paths.iter().any(collides) {
                paths.push(path);
            }
        }
        let fields: Vec<String> = paths.iter().map(|p| format!("{:?}: {}", p.join("."), u8::from(keep))).collect();
        let text = format!("{{{}}}", fields.join(", "));
        let projection = Projection::parse(jsonb(&text).view(), &ParseContext::new("projection")).unwrap();
        for _ in 0..5 {
            let document = random.object(4);
            let mut out = Builder::new();
            projection.apply(jsonb(&document.json()).view(), &mut out).unwrap();
            let expected = jsonb(&projected(&document, &paths, keep).json());
            assert_eq!(JsonbBuf::from_valid(out.take()), expected, "seed {seed}: {text} of {}", document.json());
        }
    }
}

/// Every pair of values that two paths may take together: of one array the same element.
fn pairs(value: &V, paths: [&[&str]; 2]) -> Vec<[V; 2]> {
    // Both go on together while they agree and meet no array; then each is walked as far as it leads.
    let V::Object(_) = value else { return vec![[V::Null, V::Null]] };
    let field = |path: &[&str]| match value {
        V::Object(fields) => path.first().and_then(|n| fields.iter().find(|(k, _)| k == n)).map(|(_, v)| v.clone()),
        _ => None,
    };
    let ends = |v: Option<V>, rest: &[&str]| match (v, rest) {
        (Some(v), []) => v,
        (Some(V::Object(o)), [name]) => o.iter().find(|(k, _)| k == name).map_or(V::Null, |(_, v)| v.clone()),
        _ => V::Null,
    };
    match (field(paths[0]), field(paths[1])) {
        (Some(V::Array(a)), Some(V::Array(_))) if paths[0][0] == paths[1][0] && !a.is_empty() => {
            a.into_iter().map(|e| [ends(Some(e.clone()), &paths[0][1..]), ends(Some(e), &paths[1][1..])]).collect()
        }
        (a, b) => vec![[ends(a, &paths[0][1..]), ends(b, &paths[1][1..])]],
    }
}

#[test]
fn two_paths_through_one_array_sort_by_one_element() {
    let sort = Sort::parse(jsonb(r#"{"a.b": 1, "a.c": -1}"#).view(), &ParseContext::new("sort")).unwrap();
    let key = |text: &str| {
        let mut key = Vec::new();
        sort.key(jsonb(text).view(), &mut key).unwrap();
        key
    };
    let by = |x: &[V; 2], y: &[V; 2]| order(&x[0], &y[0]).then_with(|| order(&y[1], &x[1]));
    for seed in 0..3000 {
        let mut random = Random(seed ^ 0x2222);
        let mut document = || {
            let elements = (0..1 + random.below(3)).map(|_| {
                let mut field = |name: &str| (random.below(4) > 0).then(|| (name.to_owned(), random.value(0)));
                V::Object(field("b").into_iter().chain(field("c")).collect())
            });
            V::Object(vec![("a".to_owned(), V::Array(elements.collect()))])
        };
        let (left, right) = (document(), document());
        let least = |v: &V| pairs(v, [&["a", "b"], &["a", "c"]]).into_iter().min_by(|x, y| by(x, y)).unwrap();
        let expected = by(&least(&left), &least(&right));
        assert_eq!(key(&left.json()).cmp(&key(&right.json())), expected, "seed {seed}: {left:?} {right:?}");
    }
}

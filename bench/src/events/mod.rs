//! The event-shaped data set and its five questions: as a pipeline for us, as SQL for an engine that has columns.
//!
//! `generate.rs` makes the events, `truth.rs` answers by going through them. The questions are those of a public benchmark
//! of document stores on a social network's firehose; the suite asks them in `../suite/events.rs`.

mod generate;
mod truth;

pub use generate::{COLLECTIONS, Firehose};
pub use truth::answers;

/// One question.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// What is asked, for a table.
    pub name: &'static str,
    /// As a pipeline.
    pub pipeline: &'static str,
    /// The fields of an answer's documents, in the order of the SQL's columns.
    pub fields: &'static [&'static str],
    /// The same to the flat table `FLAT`.
    pub sql: &'static str,
    /// Whether the order of the rows is part of the answer.
    pub ordered: bool,
    /// Milliseconds it may take of a million events, by HTTP, hot.
    pub goal: f64,
}

/// How an engine with columns takes the events from a file of lines, `{}` being its path: only what is asked for.
pub const FLAT: &str = "CREATE TABLE events AS SELECT did, time_us, kind, \"commit\".operation AS operation, \
     \"commit\".collection AS collection FROM read_json('{}', format = 'newline_delimited', columns = {did: 'VARCHAR', \
     time_us: 'BIGINT', kind: 'VARCHAR', \"commit\": 'STRUCT(operation VARCHAR, collection VARCHAR)'})";

/// The five.
pub const QUESTIONS: [Question; 5] = [
    Question {
        name: "events of each collection",
        pipeline: r#"[{"$group":{"_id":"$commit.collection","count":{"$sum":1}}},{"$sort":{"count":-1}}]"#,
        fields: &["_id", "count"],
        sql: "SELECT collection, count(*) AS n FROM events GROUP BY collection ORDER BY n DESC",
        ordered: false,
        goal: 2.0,
    },
    Question {
        name: "creates and users of each collection",
        pipeline: r#"[{"$match":{"kind":"commit","commit.operation":"create"}},
            {"$group":{"_id":"$commit.collection","count":{"$sum":1},"users":{"$addToSet":"$did"}}},
            {"$project":{"count":1,"users":{"$size":"$users"}}},{"$sort":{"count":-1}}]"#,
        fields: &["_id", "count", "users"],
        sql: "SELECT collection, count(*) AS n, count(DISTINCT did) FROM events \
              WHERE kind = 'commit' AND operation = 'create' GROUP BY collection ORDER BY n DESC",
        ordered: false,
        goal: 80.0,
    },
    Question {
        name: "creates of three collections by hour",
        pipeline: r#"[{"$match":{"kind":"commit","commit.operation":"create","commit.collection":{"$in":
            ["app.bsky.feed.post","app.bsky.feed.repost","app.bsky.feed.like"]}}},
            {"$group":{"_id":{"event":"$commit.collection","hour":{"$hour":{"$toDate":{"$divide":["$time_us",1000]}}}},
            "count":{"$sum":1}}},{"$project":{"_id":0,"event":"$_id.event","hour":"$_id.hour","count":1}},
            {"$sort":{"hour":1,"event":1}}]"#,
        fields: &["event", "hour", "count"],
        sql: "SELECT collection, hour(make_timestamp(time_us)) AS h, count(*) FROM events WHERE kind = 'commit' \
              AND operation = 'create' AND collection IN ('app.bsky.feed.post', 'app.bsky.feed.repost', \
              'app.bsky.feed.like') GROUP BY collection, h ORDER BY h, collection",
        ordered: true,
        goal: 20.0,
    },
    Question {
        name: "the three users who posted first",
        pipeline: r#"[{"$match":{"kind":"commit","commit.operation":"create","commit.collection":"app.bsky.feed.post"}},
            {"$group":{"_id":"$did","first":{"$min":"$time_us"}}},{"$sort":{"first":1}},{"$limit":3}]"#,
        fields: &["_id", "first"],
        sql: "SELECT did, min(time_us) AS first FROM events WHERE kind = 'commit' AND operation = 'create' \
              AND collection = 'app.bsky.feed.post' GROUP BY did ORDER BY first LIMIT 3",
        ordered: true,
        goal: 40.0,
    },
    Question {
        name: "the three users who posted over the longest time",
        pipeline: r#"[{"$match":{"kind":"commit","commit.operation":"create","commit.collection":"app.bsky.feed.post"}},
            {"$group":{"_id":"$did","first":{"$min":"$time_us"},"last":{"$max":"$time_us"}}},
            {"$project":{"span":{"$subtract":["$last","$first"]}}},
            {"$sort":{"span":-1}},{"$limit":3}]"#,
        fields: &["_id", "span"],
        sql: "SELECT did, max(time_us) - min(time_us) AS span \
              FROM events WHERE kind = 'commit' AND operation = 'create' AND collection = 'app.bsky.feed.post' \
              GROUP BY did ORDER BY span DESC LIMIT 3",
        ordered: true,
        goal: 40.0,
    },
];

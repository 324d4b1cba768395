//! Counts visits to pages, from structs and back: `cargo run -p quarrydb --example visits [DIRECTORY]`.
#![allow(clippy::print_stdout, reason = "a program for people")]

use quarrydb::{Collection, Database, FindRequest, UpdateRequest, WriteOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, Serialize, Deserialize)]
struct Page<'a> {
    #[serde(rename = "_id")]
    path: &'a str,
    visits: i64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "visits-data".to_owned());
    let db = Database::open(&directory)?;
    let pages = db.collection("site", "pages")?;
    for path in ["/", "/about", "/", "/docs", "/"] {
        let mut visit = UpdateRequest::one(
            Collection::filter(&json!({"_id": path}))?,
            Collection::update_of(&json!({"$inc": {"visits": 1}}))?,
        );
        visit.upsert = true;
        // Answered once it is on stable storage.
        pages.update(&visit, &WriteOptions::default())?.wait()?;
    }
    let mut often = pages.find(FindRequest::new(Collection::filter(&json!({"visits": {"$gte": 1}}))?))?;
    while let Some(document) = often.next()? {
        let page: Page<'_> = quarrydb_jsonb::from_jsonb(document.view())?;
        println!("{} was visited {} times", page.path, page.visits);
    }
    db.close()?;
    Ok(())
}

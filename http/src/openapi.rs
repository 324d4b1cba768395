//! The description of the API for programs: OpenAPI 3.1, from one table of routes.
//!
//! Takes the table below; gives JSON, made once. The examples of API.md hold it
//! against the router. For people: `http/API.md`.

use std::sync::OnceLock;

use bytes::Bytes;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, ObjectBuilder, OpenApiBuilder, PathsBuilder, Ref, RefOr, Required,
    ResponseBuilder, Schema,
};

use crate::router::DOCUMENT_OPERATIONS;
use crate::routes::changes::PARAMETERS as CHANGES_PARAMETERS;

/// One method of one path.
struct Route {
    method: HttpMethod,
    path: &'static str,
    summary: &'static str,
    /// The fields of the body; none: no body.
    body: Option<&'static [&'static str]>,
    success: &'static [u16],
}

const fn route(
    method: HttpMethod,
    path: &'static str,
    summary: &'static str,
    body: Option<&'static [&'static str]>,
    success: &'static [u16],
) -> Route {
    Route { method, path, summary, body, success }
}

const ROUTES: &[Route] = &[
    route(HttpMethod::Get, "/", "A page that says what this is.", None, &[200]),
    route(HttpMethod::Get, "/healthz", "The process is up.", None, &[200]),
    route(HttpMethod::Get, "/livez", "The same as /healthz.", None, &[200]),
    route(HttpMethod::Get, "/readyz", "Recovered and taking writes; 503 with the reason otherwise.", None, &[200]),
    route(HttpMethod::Get, "/metrics", "Counters and histograms as Prometheus text.", None, &[200]),
    route(HttpMethod::Get, "/openapi.json", "This description.", None, &[200]),
    route(HttpMethod::Get, "/v1/db", "The databases.", None, &[200]),
    route(HttpMethod::Get, "/v1/db/{db}", "The collections of a database.", None, &[200]),
    route(HttpMethod::Delete, "/v1/db/{db}", "Drop a database.", None, &[200]),
    route(HttpMethod::Get, "/v1/db/{db}/{coll}", "Describe a collection.", None, &[200]),
    route(HttpMethod::Put, "/v1/db/{db}/{coll}", "Make a collection.", Some(&["writeConcern"]), &[201, 200]),
    route(HttpMethod::Delete, "/v1/db/{db}/{coll}", "Drop a collection.", None, &[200]),
    route(HttpMethod::Get, "/v1/db/{db}/{coll}/indexes", "The indexes of a collection.", None, &[200]),
    route(
        HttpMethod::Get,
        "/v1/db/{db}/{coll}/changes",
        "Changes of a collection as a stream of events.",
        None,
        &[200],
    ),
    route(HttpMethod::Post, "/v1/db/{db}/{coll}/import", "Load a stream of documents.", Some(&[]), &[200]),
    route(HttpMethod::Get, "/v1/db/{db}/{coll}/doc/{id}", "The document with this _id.", None, &[200]),
    route(HttpMethod::Put, "/v1/db/{db}/{coll}/doc/{id}", "Store a document under this _id.", Some(&[]), &[201, 200]),
    route(HttpMethod::Patch, "/v1/db/{db}/{coll}/doc/{id}", "Update the document with this _id.", Some(&[]), &[200]),
    route(HttpMethod::Delete, "/v1/db/{db}/{coll}/doc/{id}", "Delete the document with this _id.", None, &[200]),
    route(HttpMethod::Get, "/v1/changes", "Changes of a database or the server as a stream of events.", None, &[200]),
    route(
        HttpMethod::Post,
        "/v1/transaction",
        "Several operations as one: all of them or none.",
        Some(&["operations", "writeConcern"]),
        &[200],
    ),
    route(HttpMethod::Post, "/v1/transactions", "Begin an interactive transaction.", None, &[201]),
    route(HttpMethod::Post, "/v1/transactions/{id}/commit", "Commit it.", Some(&["writeConcern"]), &[200]),
    route(HttpMethod::Post, "/v1/transactions/{id}/abort", "Abort it.", None, &[200]),
    route(
        HttpMethod::Post,
        "/action/{action}",
        "The MongoDB Atlas Data API.",
        Some(&["dataSource", "database", "collection"]),
        &[200, 201],
    ),
    route(
        HttpMethod::Post,
        "/data/v1/action/{action}",
        "The same.",
        Some(&["dataSource", "database", "collection"]),
        &[200, 201],
    ),
    route(
        HttpMethod::Post,
        "/app/{app}/endpoint/data/v1/action/{action}",
        "The same.",
        Some(&["dataSource", "database", "collection"]),
        &[200, 201],
    ),
];

/// What a document operation takes, and the status of its success.
fn document_operation(name: &str) -> (&'static [&'static str], &'static [u16]) {
    match name {
        "insertOne" => (&["document", "writeConcern"], &[201]),
        "insertMany" => (&["documents", "ordered", "writeConcern"], &[201]),
        "findOne" => (&["filter", "projection", "sort", "skip", "hint", "let"], &[200]),
        "find" => (&["filter", "projection", "sort", "skip", "limit", "hint", "let", "allowDiskUse"], &[200]),
        "count" => (&["filter", "skip", "limit", "hint"], &[200]),
        "aggregate" => (&["pipeline", "let", "hint", "allowDiskUse", "writeConcern"], &[200]),
        "updateOne" => (&["filter", "update", "upsert", "arrayFilters", "sort", "hint", "let", "writeConcern"], &[200]),
        "updateMany" => (&["filter", "update", "upsert", "arrayFilters", "hint", "let", "writeConcern"], &[200]),
        "replaceOne" => (&["filter", "replacement", "upsert", "sort", "hint", "let", "writeConcern"], &[200]),
        "deleteOne" | "deleteMany" => (&["filter", "hint", "let", "writeConcern"], &[200]),
        "distinct" => (&["key", "filter", "hint"], &[200]),
        "findOneAndUpdate" => (
            &[
                "filter",
                "update",
                "projection",
                "sort",
                "upsert",
                "returnDocument",
                "arrayFilters",
                "hint",
                "let",
                "writeConcern",
            ],
            &[200],
        ),
        "findOneAndReplace" => (
            &["filter", "replacement", "projection", "sort", "upsert", "returnDocument", "hint", "let", "writeConcern"],
            &[200],
        ),
        "findOneAndDelete" => (&["filter", "projection", "sort", "hint", "let", "writeConcern"], &[200]),
        "bulkWrite" => (&["operations", "ordered", "let", "writeConcern"], &[200]),
        "compact" => (&[], &[200]),
        "explain" => (&["find", "count", "distinct", "updateMany", "deleteMany"], &[200]),
        "createIndex" => (
            &[
                "keys",
                "name",
                "unique",
                "sparse",
                "partialFilterExpression",
                "expireAfterSeconds",
                "indexes",
                "writeConcern",
            ],
            &[201, 200],
        ),
        "dropIndex" => (&["name", "writeConcern"], &[200]),
        _ => (&[], &[501]),
    }
}

/// The whole description as JSON.
pub(crate) fn json() -> Bytes {
    static JSON: OnceLock<Bytes> = OnceLock::new();
    JSON.get_or_init(|| Bytes::from(build())).clone()
}

fn build() -> String {
    let mut paths = PathsBuilder::new();
    for r in ROUTES {
        paths = paths.path(r.path, item(&r.method, r.path, r.summary, r.body, r.success));
    }
    for operation in DOCUMENT_OPERATIONS {
        let (body, success) = document_operation(operation.name());
        let path = format!("/v1/db/{{db}}/{{coll}}/{}", operation.name());
        let summary = match success {
            [501] => format!("{} (not built yet: 501).", operation.name()),
            _ => format!("{} on a collection.", operation.name()),
        };
        paths = paths.path(&path, item(&HttpMethod::Post, &path, &summary, Some(body), success));
    }
    let error = ObjectBuilder::new()
        .description(Some("What went wrong: for a person, by name, by MongoDB's number."))
        .property("error", string())
        .property("error_code", string())
        .property("code", ObjectBuilder::new().schema_type(utoipa::openapi::Type::Integer))
        .required("error")
        .required("error_code");
    let key = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let components = ComponentsBuilder::new().schema("Error", error).security_scheme("key", key).build();
    let info = InfoBuilder::new()
        .title("QuarryDB")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("A document database: JSON and MongoDB Extended JSON over HTTP."))
        .build();
    let open = OpenApiBuilder::new()
        .info(info)
        .paths(paths.build())
        .components(Some(components))
        .security(Some([SecurityRequirement::new("key", [""; 0])]))
        .build();
    open.to_json().unwrap_or_else(|e| format!("{{\"error\":{}}}", crate::answer::quoted(&e.to_string())))
}

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(utoipa::openapi::Type::String)
}

fn item(method: &HttpMethod, path: &str, summary: &str, body: Option<&[&str]>, success: &[u16]) -> PathItem {
    let id = format!("{}{}", method_name(method), path.replace(['{', '}', '/', '.'], "_"));
    let mut operation = OperationBuilder::new().summary(Some(summary)).operation_id(Some(id));
    for name in path.split(['{', '}']).skip(1).step_by(2) {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(RefOr::T(Schema::Object(string().build()))));
        operation = operation.parameter(parameter);
    }
    if path.ends_with("/changes") {
        let of_path = path.contains('{');
        for name in CHANGES_PARAMETERS.iter().filter(|name| !of_path || !matches!(**name, "db" | "coll")) {
            let parameter = ParameterBuilder::new()
                .name(*name)
                .parameter_in(ParameterIn::Query)
                .schema(Some(RefOr::T(Schema::Object(string().build()))));
            operation = operation.parameter(parameter);
        }
    }
    if let Some(fields) = body {
        let mut object = ObjectBuilder::new();
        for field in fields.iter().chain(if fields.is_empty() { &[][..] } else { &["comment", "maxTimeMS"] }) {
            object = object
                .property(*field, ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::AnyValue));
        }
        let content = ContentBuilder::new().schema(Some(object)).build();
        let kind = if path.ends_with("/import") { "application/x-ndjson" } else { "application/json" };
        operation = operation.request_body(Some(RequestBodyBuilder::new().content(kind, content).build()));
    }
    for status in success {
        let kind = if *status >= 400 { "Not built yet." } else { "Done." };
        operation = operation.response(status.to_string(), ResponseBuilder::new().description(kind));
    }
    let error = ContentBuilder::new().schema(Some(Ref::from_schema_name("Error"))).build();
    let refused = ResponseBuilder::new().description("What went wrong.").content("application/json", error);
    operation = operation.response("default", refused);
    PathItem::new(method.clone(), operation)
}

fn method_name(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "get",
        HttpMethod::Put => "put",
        HttpMethod::Delete => "delete",
        HttpMethod::Patch => "patch",
        _ => "post",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    #[test]
    fn the_description_is_json_with_every_document_operation() {
        let open: serde_json::Value = serde_json::from_slice(&json()).unwrap();
        let paths = open["paths"].as_object().unwrap();
        for operation in DOCUMENT_OPERATIONS {
            let path = format!("/v1/db/{{db}}/{{coll}}/{}", operation.name());
            assert!(paths[&path]["post"].is_object(), "{path}");
        }
        let collection = &paths["/v1/db/{db}/{coll}"];
        assert!(collection["get"].is_object() && collection["put"].is_object() && collection["delete"].is_object());
        let names = |path: &str| -> Vec<String> {
            let all = paths[path]["get"]["parameters"].as_array().unwrap();
            all.iter().map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("/v1/changes"), CHANGES_PARAMETERS);
        assert_eq!(names("/v1/db/{db}/{coll}/changes")[..3], ["db", "coll", "since"]);
        assert_eq!(paths["/v1/db/{db}/{coll}/find"]["post"]["parameters"].as_array().unwrap().len(), 2);
    }
}

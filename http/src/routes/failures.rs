//! What an answer says where some writes of a sequence failed: the first of them in words, and all in `writeErrors`.

use http::StatusCode;

use crate::answer;
use crate::error::ApiError;

/// Appends `"error":..,"error_code":..,"code":..,"writeErrors":[..]` for failures by their position in the array `field` of
/// the body, and gives the status to answer with: the first one's. Nothing and 200 where there is none.
pub(super) fn print(field: &str, failures: &[(usize, ApiError)], out: &mut Vec<u8>) -> StatusCode {
    let Some((index, first)) = failures.first() else { return StatusCode::OK };
    let more = if failures.len() > 1 { format!(" (and {} more)", failures.len() - 1) } else { String::new() };
    let summary = format!("{field}[{index}]: {}{more}", first.message());
    ApiError::new(first.status(), first.name().to_owned(), first.code(), summary).print_fields(out);
    out.extend_from_slice(b",\"writeErrors\":[");
    for (i, (index, error)) in failures.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.push(b'{');
        answer::count("index", *index as u64, out);
        out.push(b',');
        error.print_fields(out);
        out.push(b'}');
    }
    out.push(b']');
    first.status()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_first_and_all() {
        let failures = [(2, ApiError::bad_value("no")), (5, ApiError::bad("TooOld", 7, "never").at("a"))];
        let mut out = Vec::new();
        assert_eq!(print("documents", &failures, &mut out), StatusCode::BAD_REQUEST);
        assert_eq!(
            String::from_utf8_lossy(&out),
            concat!(
                r#""error":"documents[2]: no (and 1 more)","error_code":"BadValue","code":2,"writeErrors":["#,
                r#"{"index":2,"error":"no","error_code":"BadValue","code":2},"#,
                r#"{"index":5,"error":"never","error_code":"TooOld","code":7,"place":"a"}]"#
            )
        );
        out.clear();
        assert_eq!((print("documents", &[], &mut out), out.len()), (StatusCode::OK, 0));
    }
}

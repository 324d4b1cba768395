//! Binary data as text and back: hex, base64 in both alphabets, UTF-8, UUIDs.

use crate::QueryError;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// BSON's subtype of UUIDs.
const UUID: u8 = 4;

fn unknown(format: &str) -> QueryError {
    let message =
        format!("invalid 'format' argument for $convert: '{format}'; base64, base64url, hex, utf8 and uuid are known");
    QueryError::location(4_341_125, message)
}

/// The text of binary data.
pub(super) fn encode(bytes: &[u8], subtype: u8, format: &str) -> Result<String, QueryError> {
    let conversion = |message: &str| QueryError::new("ConversionFailure", 241, message);
    match format {
        "auto" if subtype == UUID => uuid_text(bytes).ok_or_else(|| conversion("the data is no UUID")),
        "uuid" if subtype == UUID => uuid_text(bytes).ok_or_else(|| conversion("the data is no UUID")),
        "uuid" => Err(conversion("only binary data of subtype 4 is a UUID")),
        "auto" | "base64" => Ok(base64(bytes, STANDARD, true)),
        "base64url" => Ok(base64(bytes, URL, false)),
        "hex" => Ok(to_hex(bytes).to_uppercase()),
        "utf8" => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(conversion("the data is no UTF-8")),
        },
        _ => Err(unknown(format)),
    }
}

/// The binary data of a text; none where it does not have the format.
pub(super) fn decode(text: &str, format: &str) -> Result<Option<Vec<u8>>, QueryError> {
    Ok(match format {
        "base64" => unbase64(text, STANDARD, true),
        "base64url" => unbase64(text, URL, false),
        "hex" => hex(text),
        "utf8" => Some(text.as_bytes().to_vec()),
        "uuid" => {
            let dashes = [8, 13, 18, 23].iter().all(|&at| text.as_bytes().get(at) == Some(&b'-'));
            if dashes && text.len() == 36 { hex(&text.replace('-', "")).filter(|b| b.len() == 16) } else { None }
        }
        _ => return Err(unknown(format)),
    })
}

/// Lower-case hex digits.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from(b"0123456789abcdef"[usize::from(n & 15)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(*b)]).collect()
}

/// The bytes of hex digits.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[a, b]| u8::try_from(digit(a)? << 4 | digit(b)?).ok()).collect()
}

fn uuid_text(bytes: &[u8]) -> Option<String> {
    if bytes.len() != 16 {
        return None;
    }
    let h = to_hex(bytes);
    Some(format!("{}-{}-{}-{}-{}", h.get(..8)?, h.get(8..12)?, h.get(12..16)?, h.get(16..20)?, h.get(20..)?))
}

fn base64(bytes: &[u8], alphabet: &[u8; 64], padded: bool) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |w, &b| w << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(char::from(alphabet[(word >> (18 - 6 * i) & 63) as usize]));
            } else if padded {
                out.push('=');
            }
        }
    }
    out
}

fn unbase64(text: &str, alphabet: &[u8; 64], padded: bool) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if (padded && (!text.len().is_multiple_of(4) || text.len() - digits.len() > 2)) || digits.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut word, mut bits) = (0_u32, 0);
    for b in digits.bytes() {
        word = word << 6 | u32::try_from(alphabet.iter().position(|a| *a == b)?).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Some(out)
}

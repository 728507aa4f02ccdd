//! Changes to a JSON document: values of other types and sizes, fields that are gone, twice or elsewhere, text that breaks off.

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};

/// Texts that mean something somewhere: numbers at their ends, names, and what parsers stumble over.
pub const WORDS: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "1.5",
    "127",
    "999999999",
    "18446744073709551616",
    "1e400",
    "NaN",
    "true",
    "null",
    "all",
    "last",
    "cls",
    "none",
    "runner_up",
    "predicted",
    "top3",
    "brief",
    "shop",
    "office",
    "tiny",
    "refunds",
    "late-deliveries",
    "0,1-2",
    "3-1",
    "0-",
    ",",
    "-",
    "json",
    "png",
    "svg",
    "html",
    "npy",
    "safetensors",
    "relevance",
    "occlusion,ig",
    "text",
    "subject",
    "BYTES",
    "label",
    "probabilities",
    "Where is my order? It is late.",
    "\u{feff}",
    "\0",
    "\u{202e}a",
    "e\u{301}\u{fffd}",
    "\u{1f36a}",
    "Subject: a\r\n\r\nb",
    "<p>late<p>",
    "%",
    "%ff",
    "%00",
    "..",
    "/",
    "a=b&c",
    "\"",
];

/// The text of a document after some changes.
///
/// # Errors
/// None that the input causes: what is missing of it counts as zeros.
pub fn edited(input: &mut Unstructured<'_>, example: &Value, fields: &[String]) -> Result<Vec<u8>> {
    let mut value = example.clone();
    for _ in 0..input.int_in_range(0..=6)? {
        let place = somewhere(input, &mut value)?;
        edit(input, place, fields)?;
    }
    let mut text = value.to_string();
    if rarely(input, 8)? {
        let field = input.choose(fields)?;
        // A map holds a field once; a text may name it twice.
        text = text.replacen('{', &format!("{{\"{field}\":{},", literal(input)?), 1);
    }
    let mut bytes = text.into_bytes();
    if rarely(input, 16)? {
        bytes.truncate(input.int_in_range(0..=bytes.len())?);
    }
    if rarely(input, 16)? {
        let at = input.int_in_range(0..=bytes.len())?;
        bytes.splice(at..at, input.arbitrary::<&[u8]>()?.iter().copied());
    }
    Ok(bytes)
}

/// Once in so many times; never where the input is used up, so that a short input is a plain request.
///
/// # Errors
/// None.
pub fn rarely(input: &mut Unstructured<'_>, times: u8) -> Result<bool> {
    Ok(input.int_in_range(1..=times)? == times)
}

/// A value within the document, the document itself included.
fn somewhere<'v>(input: &mut Unstructured<'_>, value: &'v mut Value) -> Result<&'v mut Value> {
    let within = match value {
        Value::Object(map) => map.len(),
        Value::Array(list) => list.len(),
        _ => 0,
    };
    if within == 0 || rarely(input, 4)? {
        return Ok(value);
    }
    let index = input.choose_index(within)?;
    match value {
        Value::Object(map) => somewhere(input, map.values_mut().nth(index).expect("an index within the length")),
        Value::Array(list) => somewhere(input, &mut list[index]),
        other => Ok(other),
    }
}

fn edit(input: &mut Unstructured<'_>, place: &mut Value, fields: &[String]) -> Result<()> {
    match (input.int_in_range(0..=7)?, &mut *place) {
        (0 | 1, Value::Object(map)) => {
            let name = input.choose(fields)?.clone();
            map.insert(name, literal(input)?);
        }
        (2, Value::Object(map)) if !map.is_empty() => {
            let name = map.keys().nth(input.choose_index(map.len())?).cloned().unwrap_or_default();
            map.remove(&name);
        }
        (0 | 1, Value::Array(list)) => {
            let more = list.first().cloned().unwrap_or_default();
            list.extend(std::iter::repeat_n(more, input.int_in_range(1..=9)?));
        }
        (2, Value::Array(list)) => drop(list.pop()),
        (0..=2, Value::String(text)) => text.push_str(&input.arbitrary::<String>()?),
        // Past the limit of a body, and not past all memory when it is done again.
        (3, Value::String(text)) if text.len() < 256 => *text = text.repeat(input.int_in_range(0..=400)?),
        (4, _) => *place = Value::Array(vec![place.take()]),
        (5, _) => *place = Value::Object(Map::from_iter([(input.choose(fields)?.clone(), place.take())])),
        _ => *place = literal(input)?,
    }
    Ok(())
}

/// Any small value.
fn literal(input: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match input.int_in_range(0..=9)? {
        0 => Value::Null,
        1 => json!(input.arbitrary::<bool>()?),
        2 => json!(input.arbitrary::<i64>()?),
        3 => json!(input.arbitrary::<u64>()?),
        4 => json!(input.arbitrary::<f64>()?),
        5 => json!(input.arbitrary::<String>()?),
        6 => json!([]),
        7 => json!({}),
        8 => json!([input.choose(WORDS)?, input.choose(WORDS)?]),
        _ => json!(input.choose(WORDS)?),
    })
}

//! Tensors of texts: from JSON or from bytes, with their shape checked.
//!
//! A binary tensor of BYTES is, for each text, its length in four bytes, the least first, and the text itself.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::super::Text;
use super::super::object::Object;
use super::super::refusal::Refusal;

pub(super) const TEXT: &str = "text";
pub(super) const SUBJECT: &str = "subject";
pub(super) const LABEL: &str = "label";
pub(super) const SCORE: &str = "score";
pub(super) const PROBABILITIES: &str = "probabilities";
pub(super) const DECISION: &str = "decision";

/// One input of a request.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct InputTensor {
    /// `text` or `subject`.
    #[schemars(regex(pattern = "^(text|subject)$"))]
    pub(super) name: String,
    /// `[n]` or `[n, 1]`.
    #[schemars(length(min = 1, max = 2))]
    pub(super) shape: Vec<u64>,
    /// `BYTES`.
    #[schemars(regex(pattern = "^BYTES$"))]
    pub(super) datatype: String,
    pub(super) parameters: Option<Object<InputParameters>>,
    /// The texts, unless they follow the JSON in binary.
    #[schemars(with = "Option<Vec<String>>")]
    pub(super) data: Option<Value>,
}

/// Parameters of an input.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct InputParameters {
    /// Bytes of the tensor behind the JSON.
    pub(super) binary_data_size: Option<usize>,
}

/// The texts to score, of the tensors of a request and the bytes behind its JSON.
pub(super) fn texts(inputs: Vec<Object<InputTensor>>, mut binary: &[u8]) -> Result<Vec<Text>, Refusal> {
    let (mut bodies, mut subjects) = (None, None);
    for Object(input) in inputs {
        let place = match input.name.as_str() {
            TEXT => &mut bodies,
            SUBJECT => &mut subjects,
            _ => return Err(invalid("the inputs of this model are `text` and, where wanted, `subject`")),
        };
        if place.is_some() {
            return Err(Refusal::Invalid(format!("the input `{}` stands twice", input.name)));
        }
        *place = Some(strings(input, &mut binary)?);
    }
    if !binary.is_empty() {
        return Err(Refusal::Invalid(format!("{} bytes behind the JSON belong to no input", binary.len())));
    }
    let bodies = bodies.ok_or_else(|| invalid("the input `text` is missing"))?;
    match subjects {
        None => Ok(bodies.into_iter().map(Text::alone).collect()),
        Some(subjects) if subjects.len() == bodies.len() => {
            let pairs = subjects.into_iter().zip(bodies);
            Ok(pairs.map(|(subject, body)| Text { subject: Some(subject), body }).collect())
        }
        Some(subjects) => {
            Err(Refusal::Invalid(format!("`subject` has {} elements, `text` has {}", subjects.len(), bodies.len())))
        }
    }
}

fn invalid(reason: &str) -> Refusal {
    Refusal::Invalid(reason.to_owned())
}

/// The elements of one tensor, as many as its shape says.
fn strings(input: InputTensor, binary: &mut &[u8]) -> Result<Vec<String>, Refusal> {
    let InputTensor { name, shape, datatype, parameters, data } = input;
    if datatype != "BYTES" {
        return Err(Refusal::Invalid(format!("the input `{name}` must have the datatype BYTES")));
    }
    let count = match shape[..] {
        [count] | [count, 1] => count,
        _ => return Err(Refusal::Invalid(format!("the input `{name}` must have the shape [n] or [n, 1]"))),
    };
    let size = parameters.and_then(|Object(parameters)| parameters.binary_data_size);
    let strings = match (data, size) {
        (Some(_), Some(_)) => Err(Refusal::Invalid(format!("the input `{name}` has both data and binary data"))),
        (None, None) => Err(Refusal::Invalid(format!("the input `{name}` has no data"))),
        (Some(Value::Array(data)), None) => of_json(&name, data),
        (Some(_), None) => Err(Refusal::Invalid(format!("the data of `{name}` must be a list of texts"))),
        (None, Some(size)) => {
            let (tensor, rest) = binary
                .split_at_checked(size)
                .ok_or_else(|| Refusal::Invalid(format!("the binary data of `{name}` is shorter than {size} bytes")))?;
            *binary = rest;
            of_binary(&name, tensor)
        }
    }?;
    if count == 0 {
        return Err(Refusal::Invalid(format!("the input `{name}` is empty")));
    }
    if strings.len() as u64 != count {
        return Err(Refusal::Invalid(format!("the shape of `{name}` says {count}, its data holds {}", strings.len())));
    }
    Ok(strings)
}

/// Texts in a flat list, or each in a list of its own.
fn of_json(name: &str, data: Vec<Value>) -> Result<Vec<String>, Refusal> {
    let one = |value| match value {
        Value::String(text) => Some(text),
        Value::Array(mut inner) if inner.len() == 1 => inner.pop().and_then(|value| match value {
            Value::String(text) => Some(text),
            _ => None,
        }),
        _ => None,
    };
    let strings: Option<Vec<String>> = data.into_iter().map(one).collect();
    strings.ok_or_else(|| Refusal::Invalid(format!("the data of `{name}` must be a list of texts")))
}

fn of_binary(name: &str, mut tensor: &[u8]) -> Result<Vec<String>, Refusal> {
    let mut strings = Vec::new();
    while let Some((length, rest)) = tensor.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (text, rest) = rest.split_at_checked(length).ok_or_else(|| broken(name))?;
        let text = std::str::from_utf8(text)
            .map_err(|_| Refusal::Invalid(format!("element {} of `{name}` is not UTF-8", strings.len())))?;
        strings.push(text.to_owned());
        tensor = rest;
    }
    if tensor.is_empty() { Ok(strings) } else { Err(broken(name)) }
}

fn broken(name: &str) -> Refusal {
    Refusal::Invalid(format!("the binary data of `{name}` breaks off within an element"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(inputs: Value, binary: &[u8]) -> Result<Vec<Text>, String> {
        texts(serde_json::from_value(inputs).unwrap(), binary).map_err(|refusal| refusal.message())
    }

    fn tensor(data: &Value) -> Value {
        json!([{"name": "text", "shape": [2], "datatype": "BYTES", "data": data}])
    }

    #[test]
    fn texts_come_in_a_flat_list_or_one_in_each_list() {
        let expected = vec![Text::alone("a".into()), Text::alone("b".into())];
        assert_eq!(read(tensor(&json!(["a", "b"])), b"").unwrap(), expected);
        assert_eq!(read(tensor(&json!([["a"], ["b"]])), b"").unwrap(), expected);
    }

    #[test]
    fn a_subject_stands_beside_each_text() {
        let part = |name: &str, text: &str| json!({"name": name, "shape": [1, 1], "datatype": "BYTES", "data": [text]});
        let texts = read(json!([part("subject", "s"), part("text", "t")]), b"").unwrap();
        assert_eq!(texts, [Text { subject: Some("s".into()), body: "t".into() }]);
        assert!(read(json!([part("subject", "s")]), b"").unwrap_err().contains("`text` is missing"));
        assert!(read(json!([part("text", "s"), part("text", "t")]), b"").unwrap_err().contains("twice"));
    }

    #[test]
    fn binary_texts_are_read_behind_the_json() {
        let inputs = |shape: usize, size: usize| json!([{"name": "text", "shape": [shape], "datatype": "BYTES", "parameters": {"binary_data_size": size}}]);
        let bytes = b"\x02\0\0\0ab\0\0\0\0";
        assert_eq!(read(inputs(2, 10), bytes).unwrap(), [Text::alone("ab".into()), Text::default()]);
        for (shape, size, bytes, reason) in [
            (2, 11, &bytes[..], "shorter than 11 bytes"),
            (1, 6, &bytes[..], "belong to no input"),
            (2, 9, &bytes[..9], "breaks off"),
            (1, 10, &bytes[..], "says 1, its data holds 2"),
            (1, 5, b"\x01\0\0\0\xff", "not UTF-8"),
            (1, 5, b"\xff\xff\xff\xffa", "breaks off"),
        ] {
            let refused = read(inputs(shape, size), bytes).unwrap_err();
            assert!(refused.contains(reason), "{reason}: {refused}");
        }
    }

    #[test]
    fn a_tensor_that_is_not_what_it_says_is_refused() {
        let part = |shape: Value, datatype: &str, data: Value| {
            read(json!([{"name": "text", "shape": shape, "datatype": datatype, "data": data}]), b"").unwrap_err()
        };
        assert!(part(json!([1]), "FP32", json!(["a"])).contains("BYTES"));
        assert!(part(json!([1, 2]), "BYTES", json!(["a", "b"])).contains("[n] or [n, 1]"));
        assert!(part(json!([3]), "BYTES", json!(["a"])).contains("says 3"));
        assert!(part(json!([1]), "BYTES", json!([7])).contains("a list of texts"));
        assert!(part(json!([0]), "BYTES", json!([])).contains("is empty"));
        assert!(part(json!([18_446_744_073_709_551_615_u64]), "BYTES", json!(["a"])).contains("says 18446"));
    }
}

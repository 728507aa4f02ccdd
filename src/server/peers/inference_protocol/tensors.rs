//! Tensors of texts: from JSON or from bytes, with their shape checked.
//!
//! A binary tensor of BYTES is, for each text, its length in four bytes, the least first, and the text itself.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::super::Text;
use super::super::given::{Given, List, whole};
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
    pub(super) data: Option<Given>,
}

/// Parameters of an input.
#[derive(Debug, Deserialize, JsonSchema)]
pub(in crate::server) struct InputParameters {
    /// Bytes of the tensor behind the JSON.
    pub(super) binary_data_size: Option<usize>,
}

/// Tensors that are kept of a request: one more than there are inputs, so that it is refused as one of any more would
/// be.
const KEPT: usize = 3;

/// Reads the tensors of a request, of which each may be long.
pub(super) fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Object<InputTensor>>, D::Error> {
    deserializer.deserialize_seq(FewVisitor)
}

struct FewVisitor;

impl<'de> Visitor<'de> for FewVisitor {
    type Value = Vec<Object<InputTensor>>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut tensors = Vec::new();
        while tensors.len() < KEPT {
            match list.next_element()? {
                Some(tensor) => tensors.push(tensor),
                None => return Ok(tensors),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(tensors)
    }
}

/// The texts to score, of the tensors of a request and the bytes behind its JSON, at most `limit`.
pub(super) fn texts(inputs: Vec<Object<InputTensor>>, mut binary: &[u8], limit: usize) -> Result<Vec<Text>, Refusal> {
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
        *place = Some(strings(input, &mut binary, limit)?);
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
fn strings(input: InputTensor, binary: &mut &[u8], limit: usize) -> Result<Vec<String>, Refusal> {
    let InputTensor { name, shape, datatype, parameters, data } = input;
    if datatype != "BYTES" {
        return Err(Refusal::Invalid(format!("the input `{name}` must have the datatype BYTES")));
    }
    let count = match shape[..] {
        [count] | [count, 1] => count,
        _ => return Err(Refusal::Invalid(format!("the input `{name}` must have the shape [n] or [n, 1]"))),
    };
    let size = parameters.and_then(|Object(parameters)| parameters.binary_data_size);
    let (strings, given) = match (data, size) {
        (Some(_), Some(_)) => Err(Refusal::Invalid(format!("the input `{name}` has both data and binary data"))),
        (None, None) => Err(Refusal::Invalid(format!("the input `{name}` has no data"))),
        (Some(Given::List(data)), None) => of_json(&name, data),
        (Some(_), None) => Err(Refusal::Invalid(format!("the data of `{name}` must be a list of texts"))),
        (None, Some(size)) => {
            let (tensor, rest) = binary
                .split_at_checked(size)
                .ok_or_else(|| Refusal::Invalid(format!("the binary data of `{name}` is shorter than {size} bytes")))?;
            *binary = rest;
            of_binary(&name, tensor, limit)
        }
    }?;
    if count == 0 {
        return Err(Refusal::Invalid(format!("the input `{name}` is empty")));
    }
    if given as u64 != count {
        return Err(Refusal::Invalid(format!("the shape of `{name}` says {count}, its data holds {given}")));
    }
    whole(strings, given, limit)
}

/// Texts in a flat list, or each in a list of its own: the first of them, and how many there are.
fn of_json(name: &str, List { kept, given }: List) -> Result<(Vec<String>, usize), Refusal> {
    let one = |item: Given| match item {
        Given::List(List { kept, given: 1 }) => kept.into_iter().next().and_then(Given::text),
        item => item.text(),
    };
    let strings: Option<Vec<String>> = kept.into_iter().map(one).collect();
    let strings = strings.ok_or_else(|| Refusal::Invalid(format!("the data of `{name}` must be a list of texts")))?;
    Ok((strings, given))
}

/// The first `limit` texts, and how many there are: an empty one takes four bytes here and many more as a text.
fn of_binary(name: &str, mut tensor: &[u8], limit: usize) -> Result<(Vec<String>, usize), Refusal> {
    let (mut strings, mut given) = (Vec::new(), 0);
    while let Some((length, rest)) = tensor.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (text, rest) = rest.split_at_checked(length).ok_or_else(|| broken(name))?;
        let text = std::str::from_utf8(text)
            .map_err(|_| Refusal::Invalid(format!("element {given} of `{name}` is not UTF-8")))?;
        if given < limit {
            strings.push(text.to_owned());
        }
        given += 1;
        tensor = rest;
    }
    if tensor.is_empty() { Ok((strings, given)) } else { Err(broken(name)) }
}

fn broken(name: &str) -> Refusal {
    Refusal::Invalid(format!("the binary data of `{name}` breaks off within an element"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(inputs: Value, binary: &[u8]) -> Result<Vec<Text>, String> {
        texts(few(inputs).unwrap(), binary, 3).map_err(|refusal| refusal.message())
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
        let many = [part("text", "t"), part("subject", "s"), part("text", "u"), json!("no tensor")];
        assert_eq!(few(json!(many)).unwrap().len(), KEPT);
        assert!(read(json!(many), b"").unwrap_err().contains("twice"));
    }

    #[test]
    fn binary_texts_are_read_behind_the_json() {
        let inputs = |shape: usize, size: usize| json!([{"name": "text", "shape": [shape], "datatype": "BYTES", "parameters": {"binary_data_size": size}}]);
        let bytes = b"\x02\0\0\0ab\0\0\0\0";
        assert_eq!(read(inputs(2, 10), bytes).unwrap(), [Text::alone("ab".into()), Text::default()]);
        for (shape, size, bytes, reason) in [
            (4, 16, &[0; 16][..], "4 inputs in one request, at most 3"),
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

//! Maps for programs: NumPy's `.npy` and safetensors.

use std::borrow::Cow;
use std::collections::HashMap;

use safetensors::tensor::{Dtype as Stored, Metadata, TensorInfo};

use super::super::quantise::{Dtype, append_floats, quantised};
use super::{AttentionMap, ExportError, Sheet};

/// One array `[layer, head, query, key]` in NumPy's format 1.0, in two or four bytes a weight.
///
/// ```
/// use postroom::explain::{AttentionMap, Dtype, npy};
///
/// let map = AttentionMap { shape: [1, 1, 1, 2], data: vec![0.25, 0.75] };
/// let file = npy(&map, Dtype::F32);
/// assert_eq!(&file[..6], b"\x93NUMPY");
/// assert_eq!(file.len() % 64, 8);
/// ```
#[must_use]
pub fn npy(map: &AttentionMap, dtype: Dtype) -> Vec<u8> {
    let descr = if dtype == Dtype::F32 { "<f4" } else { "<f2" };
    let shape = map.shape.map(|size| size.to_string()).join(", ");
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and length take ten bytes; the data begins at a multiple of 64.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.extend(std::iter::repeat_n(' ', padded - 1 - header.len()));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((padded as u16).to_le_bytes());
    file.extend(header.into_bytes());
    append_floats(&mut file, &map.data, dtype);
    file
}

/// The maps of all windows: `attention` (`attention.0`, `attention.1` ... where there are several windows), `offsets` with the
/// places of the columns, for `U8` the maximum of each row as `scale`. `meta` goes into the header as it is.
///
/// # Errors
/// [`ExportError::Format`].
pub fn safetensors(sheets: &[&Sheet], dtype: Dtype, meta: &str) -> Result<Vec<u8>, ExportError> {
    let mut arrays: Vec<Array<'_>> = Vec::new();
    for (index, sheet) in sheets.iter().enumerate() {
        let name = |what: &str| if sheets.len() > 1 { format!("{what}.{index}") } else { what.to_owned() };
        let shape = sheet.map.shape.to_vec();
        let mut add = |what: &str, shape: Vec<usize>, values| arrays.push(Array { name: name(what), shape, values });
        match dtype {
            Dtype::F32 | Dtype::F16 => add("attention", shape, Values::Floats(Cow::Borrowed(&sheet.map.data), dtype)),
            Dtype::U8 => {
                let rows = sheet.map.data.chunks_exact(shape[3].max(1)).map(quantised);
                let (bytes, scales): (Vec<Vec<u8>>, Vec<f32>) = rows.unzip();
                add("scale", shape[..3].to_vec(), Values::Floats(Cow::Owned(scales), Dtype::F32));
                add("attention", shape, Values::Bytes(bytes.concat()));
            }
        }
        add("offsets", vec![sheet.offsets.len(), 2], Values::Offsets(&sheet.offsets));
    }
    // The wider the numbers the earlier, so that all of them are aligned; that is the order of the format's own writer.
    arrays.sort_by(|a, b| b.values.stored().cmp(&a.values.stored()).then_with(|| a.name.cmp(&b.name)));
    write(&arrays, meta)
}

/// One array of a file.
struct Array<'a> {
    name: String,
    shape: Vec<usize>,
    values: Values<'a>,
}

enum Values<'a> {
    Floats(Cow<'a, [f32]>, Dtype),
    Bytes(Vec<u8>),
    Offsets(&'a [[u32; 2]]),
}

impl Values<'_> {
    fn stored(&self) -> Stored {
        match self {
            Self::Floats(_, Dtype::F32) => Stored::F32,
            Self::Floats(..) => Stored::F16,
            Self::Bytes(_) => Stored::U8,
            Self::Offsets(_) => Stored::U32,
        }
    }

    fn append(&self, file: &mut Vec<u8>) {
        match self {
            Self::Floats(values, dtype) => append_floats(file, values, *dtype),
            Self::Bytes(bytes) => file.extend_from_slice(bytes),
            Self::Offsets(offsets) => file.extend(offsets.iter().flatten().flat_map(|offset| offset.to_le_bytes())),
        }
    }
}

/// Length and header, then the arrays, each converted where it shall stand: the library's writer takes finished bytes, which for
/// megabytes of weights would be made, copied and thrown away.
fn write(arrays: &[Array<'_>], meta: &str) -> Result<Vec<u8>, ExportError> {
    let mut end = 0;
    let described = arrays.iter().map(|Array { name, shape, values }| {
        let (dtype, start) = (values.stored(), end);
        end += shape.iter().product::<usize>() * dtype.bitsize() / 8;
        (name.clone(), TensorInfo { dtype, shape: shape.clone(), data_offsets: (start, end) })
    });
    let format = |source: safetensors::SafeTensorError| ExportError::Format(source.to_string());
    let metadata = HashMap::from([("meta".to_owned(), meta.to_owned())]);
    let header = Metadata::new(Some(metadata), described.collect()).map_err(format)?;
    let mut header = serde_json::to_vec(&header).map_err(|source| ExportError::Format(source.to_string()))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = Vec::with_capacity(8 + header.len() + end);
    file.extend((header.len() as u64).to_le_bytes());
    file.extend(header);
    arrays.iter().for_each(|array| array.values.append(&mut file));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::super::super::quantise::restored;
    use super::super::testing::sheet;
    use super::*;

    #[test]
    fn an_npy_header_names_type_and_shape_and_the_data_follows_aligned() {
        let file = npy(&sheet().map, Dtype::F16);
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        let header = std::str::from_utf8(&file[10..10 + length]).unwrap();
        assert!(header.starts_with("{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2, 1, 3), }"));
        assert!(header.ends_with('\n') && (10 + length) % 64 == 0);
        assert_eq!(&file[10 + length..10 + length + 2], half::f16::from_f32(0.5).to_le_bytes());
        assert_eq!(file.len(), 10 + length + 12);
    }

    #[test]
    fn a_safetensors_file_gives_the_weights_back() {
        for (dtype, tolerance) in [(Dtype::F32, 0.0), (Dtype::F16, 1e-3), (Dtype::U8, 0.004)] {
            let file = safetensors(&[&sheet()], dtype, "{}").unwrap();
            let read = SafeTensors::deserialize(&file).unwrap();
            let attention = read.tensor("attention").unwrap();
            assert_eq!(attention.shape(), [1, 2, 1, 3]);
            let bytes = attention.data();
            let weights: Vec<f32> = match dtype {
                Dtype::F32 => bytes.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
                Dtype::F16 => bytes.chunks(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
                Dtype::U8 => {
                    let scales = read.tensor("scale").unwrap();
                    assert_eq!(scales.shape(), [1, 2, 1]);
                    let scale =
                        |row: usize| f32::from_le_bytes(scales.data()[4 * row..4 * row + 4].try_into().unwrap());
                    bytes.chunks(3).enumerate().flat_map(|(row, bytes)| restored(bytes, scale(row))).collect()
                }
            };
            for (weight, back) in sheet().map.data.iter().zip(weights) {
                assert!((weight - back).abs() <= tolerance, "{dtype:?}: {weight} {back}");
            }
            assert_eq!(read.tensor("offsets").unwrap().shape(), [3, 2]);
        }
        let two = safetensors(&[&sheet(), &sheet()], Dtype::F16, "{}").unwrap();
        assert!(SafeTensors::deserialize(&two).unwrap().tensor("attention.1").is_ok());
    }
}

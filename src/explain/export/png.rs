//! A map as a picture of coloured cells, without words; they stand in the text chunks.

use ::png::{BitDepth, ColorType, Encoder};

use super::{Caption, ExportError, MAX_SIDE, Sheet, colour, largest, panels};

/// Pixels between two maps.
const GAP: usize = 2;

/// Largest cell in pixels.
const MAX_CELL: usize = 16;

/// The maps of one window: layers down, heads across, each to its own largest weight. What it shows stands in its text chunks.
///
/// # Errors
/// [`ExportError::TooLarge`].
pub fn png(sheet: &Sheet, caption: &Caption) -> Result<Vec<u8>, ExportError> {
    let [layers, heads, queries, keys] = sheet.map.shape;
    let side = |count: usize, cells: usize, cell: usize| count * (cells * cell + GAP) + GAP;
    // The largest cell that fits: one row of many words may be wide and low.
    let fits = |cell: &usize| side(heads, keys, *cell) <= MAX_SIDE && side(layers, queries, *cell) <= MAX_SIDE;
    let cell = (1..=MAX_CELL)
        .rev()
        .find(fits)
        .ok_or(ExportError::TooLarge { width: side(heads, keys, 1), height: side(layers, queries, 1) })?;
    let (width, height) = (side(heads, keys, cell), side(layers, queries, cell));
    let mut pixels = vec![200u8; width * height * 3];
    for (layer, head, map) in panels(sheet) {
        let (left, top) = (GAP + head * (keys * cell + GAP), GAP + layer * (queries * cell + GAP));
        let highest = largest(map);
        for (index, weight) in map.iter().enumerate() {
            let (row, column) = (index / keys, index % keys);
            let rgb = colour(weight / highest);
            for y in 0..cell {
                let start = ((top + row * cell + y) * width + left + column * cell) * 3;
                pixels[start..start + 3 * cell].chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&rgb));
            }
        }
    }
    let format = |source: ::png::EncodingError| ExportError::Format(source.to_string());
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    let words = |words: &[String]| words.join(" ");
    for (name, text) in [
        ("Description", caption.line()),
        ("Rows", words(&sheet.rows)),
        ("Columns", words(&sheet.columns)),
        ("Layers", words(&sheet.layers)),
        ("Heads", words(&sheet.heads)),
    ] {
        encoder.add_itxt_chunk(name.to_owned(), text).map_err(format)?;
    }
    let mut writer = encoder.write_header().map_err(format)?;
    writer.write_image_data(&pixels).map_err(format)?;
    writer.finish().map_err(format)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{caption, sheet};
    use super::*;

    #[test]
    fn the_darkest_cell_is_the_largest_weight_and_the_text_says_what_it_is() {
        let file = png(&sheet(), &caption()).unwrap();
        let mut reader = ::png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (2 * (3 * 16 + 2) + 2, 16 + 2 + 2));
        let at = |x: usize, y: usize| &pixels[(y * info.width as usize + x) * 3..][..3];
        assert_eq!(at(2 + 8, 8), colour(1.0));
        assert_eq!(at(2 + 50 + 16 + 8, 8), colour(1.0));
        assert_eq!(at(2 + 50 + 8, 8), colour(0.0));
        let texts: Vec<String> = reader.info().utf8_text.iter().map(|chunk| chunk.get_text().unwrap()).collect();
        assert!(texts.iter().any(|text| text.contains("clue, not a proof") && text.contains("crumb 1")), "{texts:?}");
    }

    #[test]
    fn a_picture_over_the_limit_is_refused() {
        let mut wide = sheet();
        wide.map.shape = [1, 1, 1, 5000];
        wide.map.data = vec![0.0; 5000];
        assert!(matches!(png(&wide, &caption()), Err(ExportError::TooLarge { width: 5004, height: 5 })));
    }
}
